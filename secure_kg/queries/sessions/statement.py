"""What an asker states before a session, and signs with its identity: everything on which its parties must agree.

The statement names the federation, the model, the settings and the asker. A fresh number and the time make it good for
one session. It has one encoding: whatever else has the same meaning is refused, so that what is signed, what is
compared and what enters keys are the same bytes.
"""

import json
import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from protocols.foundation.digests import digest
from protocols.foundation.errors import ProtocolError
from protocols.lookups.names import MOST_NAMES
from protocols.registry import SCORES
from protocols.session.identities import IdentityError
from protocols.session.site_keys import sign_document, verify_document
from secure_kg.foundation.parsing import json_of
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.sessions.messages import MOST_STATEMENT_BYTES

WINDOW_SECONDS: Final = 600
"""A statement is good for so long, before and after its time by the clock of whoever reads it."""
NUMBER_BYTES: Final = 16
_KIND: Final = "session of questions"
_FORMAT: Final = 1
_DIGEST_BYTES: Final = 32
_LARGEST: Final = 1 << 40
_GREETING: Final = b"secure-kg/questions/statement/1"


class StatementRefused(ProtocolError):
    """A session that this party does not begin. The text is for everybody: it names no data of this party."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Made by the asker alone. Digests are in hexadecimal."""

    federation: str
    """What all versions of a federation's roster have alike (`Roster.digest`)."""
    union: str
    """Of the alignment whose positions are asked for."""
    table: str
    """Of what all clients of one and the same model have alike (`Knowledge.table`)."""
    asker: int
    scores: str
    top: int
    hide_query: bool
    exact: str
    least: int
    number: str
    time: int
    """In seconds since 1970."""
    format: int = _FORMAT

    def __post_init__(self) -> None:
        digests = (self.federation, self.union, self.table)
        sound = (
            all(_is_hex(one, _DIGEST_BYTES) for one in digests)
            and _is_hex(self.number, NUMBER_BYTES)
            and all(_is_number(one, _LARGEST) for one in (self.asker, self.least, self.time))
            and _is_number(self.top, MOST_NAMES)
            and type(self.hide_query) is bool
            and self.format == _FORMAT
            and isinstance(self.scores, str)
            and self.scores in SCORES
            and not SCORES[self.scores].own_process
            and self.exact in list(Exact)
            and not (self.hide_query and (self.scores != "topk" or self.exact == Exact.ONLY))
        )
        if not sound:
            raise StatementRefused("a statement that no asker of this version makes")

    @classmethod
    def of(cls, settings: AskSettings, least: int, federation: bytes, union: bytes, table: bytes) -> "Statement":
        """The next statement of the asker. `time` is set when it is signed (`signed`)."""
        return cls(
            federation=federation.hex(),
            union=union.hex(),
            table=table.hex(),
            asker=settings.client,
            scores=settings.scores,
            top=settings.top,
            hide_query=settings.hide_query,
            exact=settings.exact.value,
            least=least,
            number=secrets.token_hex(NUMBER_BYTES),
            time=1,
        )

    def settings(self, own: AskSettings) -> AskSettings:
        """The settings of a party that has its own rules, budgets and records."""
        return replace(
            own,
            client=self.asker,
            scores=self.scores,
            top=self.top,
            hide_query=self.hide_query,
            exact=Exact(self.exact),
            min_holders=self.least,
        )

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    def signed(self, identity_pem: bytes, now: float) -> tuple[bytes, bytes]:
        """A statement with a number of its own, and the signature."""
        fresh = replace(self, number=secrets.token_hex(NUMBER_BYTES), time=int(now))
        content = fresh.to_bytes()
        return content, sign_document(identity_pem, _KIND, content)


def read_statement(content: bytes) -> Statement:
    """`StatementRefused` for bytes that `Statement.to_bytes` would not write. Nobody has signed it yet."""
    try:
        values: Any = json_of(content) if len(content) <= MOST_STATEMENT_BYTES else None
        found = Statement(**values)
        if found.to_bytes() != content:
            raise ValueError
    except (ValueError, TypeError, UnicodeDecodeError):
        raise StatementRefused("a statement that no asker of this version makes") from None
    return found


def require_signature(content: bytes, signature: bytes, identity: bytes | None) -> None:
    """`identity`: that of the asker, by the reader's own roster; None for one that has none, or was revoked."""
    try:
        if identity is None:
            raise IdentityError
        verify_document(identity, _KIND, content, signature)
    except IdentityError:
        raise StatementRefused("a session in the name of a member that has not asked for it") from None


def greeting(content: bytes) -> bytes:
    """What keys of the session are bound to."""
    return digest(_GREETING, content)


def _is_hex(value: object, size: int) -> bool:
    return isinstance(value, str) and len(value) == 2 * size and not set(value) - set("0123456789abcdef")


def _is_number(value: object, largest: int) -> bool:
    return type(value) is int and 1 <= value <= largest
