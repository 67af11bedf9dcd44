"""Keys on their way between clients: signed where that is declared, unchanged by the server, one to a client."""

from collections.abc import Mapping

from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.channels import channel_statement
from protocols.session.credentials import check_signed
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.secagg.messages import AdvertiseKeys, KeyDirectory
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class Keys(Check):
    id = "identity-keys"
    question = "Were keys changed or replaced on their way, or not signed where the run calls for signatures?"

    def __init__(self, config: RunConfig, clients: int, directory: Mapping[PartyId, bytes] | None = None) -> None:
        """`directory`: the clients' pinned identities, if the auditor has them."""
        super().__init__(config, clients)
        self._directory = directory
        self._session: SessionId | None = None
        self._adverts: dict[tuple[int, str, int], bytes] = {}
        self._keys = self._signatures = self._verified = 0
        self._unsigned, self._changed, self._replaced, self._false = Evidence(), Evidence(), Evidence(), Evidence()

    def begin_session(self) -> None:
        self._adverts, self._session = {}, None

    def observe(self, observation: Observation) -> None:
        message, party = observation.message, observation.peer
        match message:
            case Welcome():
                self._session = SessionId(message.session)
            case AdvertiseChannel():
                self._advertised(observation, message.channel_key, message.signature)
                self._verify(party, message)
            case AdvertiseKeys():
                self._advertised(observation, message.mask_key, message.signature)
            case ChannelDirectory():
                self._relayed(observation, message.channel_keys)
            case KeyDirectory():
                self._relayed(observation, message.mask_keys)

    def _advertised(self, observation: Observation, key: bytes, signature: bytes) -> None:
        self._keys += 1
        self._signatures += bool(signature)
        where = f"client {observation.peer}, round {observation.round} {observation.purpose}".rstrip()
        if not signature:
            self._unsigned.add(where)
        name = observation.round, observation.purpose, observation.peer
        if self._adverts.setdefault(name, key) != key:
            self._changed.add(f"{where}: a second key")

    def _relayed(self, observation: Observation, keys: dict[int, bytes]) -> None:
        for owner, key in keys.items():
            if self._adverts.get((observation.round, observation.purpose, owner)) != key:
                self._replaced.add(
                    f"round {observation.round} {observation.purpose}: client {observation.peer} was sent a key of "
                    f"client {owner} that client {owner} did not send"
                )

    def _verify(self, party: int, message: AdvertiseChannel) -> None:
        if self._directory is None or self._session is None or not message.signature:
            return
        self._verified += 1
        statement = channel_statement(self._session, PartyId(party), message.channel_key)
        try:
            check_signed(self._directory, statement, message.signature)
        except ProtocolError as problem:
            self._false.add(str(problem))

    def opened(self, total: OpenedSum) -> None:
        self._verified += total.signatures
        for line in total.false_signatures:
            self._false.add(line)

    def findings(self) -> list[Finding]:
        found = []
        if self.config.adversary == "active" and self._directory is None and self._signatures:
            found.append(
                Finding(
                    "signatures-not-verified",
                    "medium",
                    "Signatures are there, and nobody has checked them",
                    (f"{self._signatures} signed keys",),
                    "Without the clients' key directory (--keys directory.toml) an auditor cannot tell whose "
                    "signatures these are.",
                )
            )
        if self._replaced:
            found.append(
                Finding(
                    "key-replaced",
                    "high",
                    "Clients were sent other keys than their owners had sent",
                    self._replaced.told(),
                    "Whoever replaces a key shares the masks it makes and can remove them: the server, or somebody "
                    "between it and the client, was in the middle. Signed keys (--adversary active) prevent it.",
                )
            )
        if self._changed:
            found.append(
                Finding(
                    "key-changed",
                    "high",
                    "A client's key changed within one step",
                    self._changed.told(),
                    "An honest client sends one key. Two come from two senders, or from software that is not ours.",
                )
            )
        if self._false:
            found.append(
                Finding(
                    "signature-false",
                    "high",
                    "Keys are signed by other identities than those that are pinned",
                    self._false.told(),
                    "Somebody else speaks under a client's number.",
                )
            )
        if self._unsigned:
            declared = self.config.adversary == "semi-honest"
            found.append(
                Finding(
                    "unsigned-keys",
                    "info" if declared else "high",
                    "Keys are not signed",
                    self._unsigned.told()[:4],
                    "Clients take each other's keys on the server's word, as --adversary semi-honest declares. A "
                    "server that replaces keys is not covered; --adversary active with --keys covers it."
                    if declared
                    else "The run declares an active adversary, and yet these keys carry no signature.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._keys

    def looked_at(self) -> str:
        checked = (
            f"; {counted(self._verified, 'signature')} checked against pinned identities" if self._verified else ""
        )
        return f"{counted(self._keys, 'key')}, {self._signatures:,} of them signed{checked}"
