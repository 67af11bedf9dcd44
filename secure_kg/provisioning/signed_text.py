"""TOML texts that end in their signatures, checked before anything is parsed.

    kind = "federation"             the body: what is signed are its bytes, under a label for its kind
    ...

    [signature]
    <64 hex digits> = "<128>"       one line for each signer: public key and signature

Line ends of other systems (CR LF), into which mail programs turn them, are read as LF; everything else counts to the
byte. Bounded before parsing: the whole, and each line.
"""

import os
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from protocols.session.identities import IdentityError
from protocols.session.site_keys import public_of, sign_document, verify_document
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown

_MARK: Final = "\n[signature]\n"
_LINE: Final = re.compile('([0-9a-f]{64}) = "([0-9a-f]{128})"')
_KIND: Final = re.compile('^kind = "([a-z]{1,32})"$', re.MULTILINE)
_MOST_SIGNERS: Final = 2
_LONGEST_LINE: Final = 1024
"""For a key of many parts the parser takes the square of its length."""


@dataclass(frozen=True, slots=True)
class SignedText:
    """A text whose signatures were checked."""

    body: str
    signers: tuple[bytes, ...]
    """Public keys in the order of their lines, each once."""

    def values(self) -> dict[str, Any]:
        """The body as TOML; `UserError` for what is none."""
        if any(len(line) > _LONGEST_LINE for line in self.body.split("\n")):
            raise UserError("has a line longer than any in such a file")
        try:
            return tomllib.loads(self.body)
        except (ValueError, RecursionError):
            raise UserError("not a TOML file") from None


def signed_text(body: str, kind: str, private_pems: Sequence[bytes]) -> str:
    """The body with a signature by each key; the same input gives the same bytes."""
    if _MARK in body or not body.endswith("\n"):
        raise ValueError("a body that would be read as another")
    lines = [f'{public_of(pem).hex()} = "{sign_document(pem, kind, body.encode()).hex()}"\n' for pem in private_pems]
    return f"{body}{_MARK}{''.join(lines)}"


def split_signed(text: str, kind: str) -> SignedText:
    """The text, if each of its signatures fits; `UserError` otherwise. Whose they are is the caller's to check."""
    text = text.replace("\r\n", "\n")
    body, mark, tail = text.partition(_MARK)
    if not mark:
        raise UserError("not signed, or cut off before its signature")
    lines = tail.rstrip("\n").split("\n")
    found = [_LINE.fullmatch(line) for line in lines[: _MOST_SIGNERS + 1]]
    if len(lines) > _MOST_SIGNERS or not all(found):
        raise UserError("its signature is cut off or followed by something else")
    signers = []
    for one in found:
        if one is None:
            continue
        public, signature = map(bytes.fromhex, one.groups())
        try:
            verify_document(public, kind, body.encode(), signature)
        except IdentityError:
            other = _KIND.search(body)
            if other is not None and other[1] != kind:
                raise UserError(f"this is a file of kind {other[1]}, not {kind}") from None
            raise UserError("its signature does not fit: it was changed after it was signed, or cut") from None
        signers.append(public)
    if len(set(signers)) != len(signers):
        raise UserError("signed twice by the same identity")
    return SignedText(body, tuple(signers))


def read_public(path: Path, largest: int) -> str:
    """The text of a file that somebody else may have made: regular, of bounded size, in UTF-8."""
    try:
        # Opened first and then looked at, without waiting: a pipe may be put in the file's place at any moment.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", closefd=True) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{shown(path)}: no regular file")
            content = file.read(largest + 1)
        if len(content) > largest:
            raise UserError(f"{shown(path)}: larger than any such file is")
        return content.decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{shown(path)}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{shown(path)}: no regular file") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown(path)}: not a text file in UTF-8") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no name of a file"
        raise UserError(f"{shown(path)}: cannot be read ({reason})") from None
