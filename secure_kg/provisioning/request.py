"""A site's request to take part: its name and identity, signed by that identity, which proves that it has the key.

A rotation is a request that the old identity has signed as well. A request holds nothing private. Misuse: whoever makes
one can write any name into it; the fingerprint is what the coordinator compares with the site over another channel.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import tomli_w

from protocols.session.site_keys import IDENTITY_BYTES, certificate_of, fingerprint, public_of
from secure_kg import __version__
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning import fields
from secure_kg.provisioning.signed_text import read_public, signed_text, split_signed

KIND: Final = "request"
FORMAT: Final = 1
_LARGEST: Final = 1 << 13


@dataclass(frozen=True, slots=True)
class Request:
    """What a request says, once its signatures were checked."""

    name: str
    identity: bytes
    certificate: bytes
    made: datetime
    previous: bytes | None
    """Of a rotation: the identity that it replaces, which has signed, too."""

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.identity)


def request_text(name: str, private_pem: bytes, now: datetime, previous_pem: bytes | None = None) -> str:
    """A signed request; `previous_pem`: the identity that it replaces."""
    identity = public_of(private_pem)
    values = {
        "kind": KIND,
        "format": FORMAT,
        "software": __version__,
        "name": fields.name(name),
        "made": fields.time_text(now),
        "identity": identity.hex(),
        "certificate": fields.encoded(certificate_of(private_pem)),
    }
    if previous_pem is not None:
        values["previous"] = public_of(previous_pem).hex()
    signers = [private_pem] if previous_pem is None else [private_pem, previous_pem]
    return signed_text(tomli_w.dumps(values), KIND, signers)


def parse_request(text: str) -> Request:
    """`UserError` for what is no request, or is not signed by the identities that it names."""
    if "PRIVATE KEY" in text:
        raise UserError("a private key, which its owner must not pass on; the request ends in .toml")
    signed = split_signed(text, KIND)
    values = signed.values()
    fields.only(values, "kind", "format", "software", "name", "made", "identity", "certificate", "previous")
    if values.get("kind") != KIND or type(values.get("format")) is not int or values["format"] != FORMAT:
        raise UserError(f"not a request of format {FORMAT}")
    identity = fields.octets(values, "identity", IDENTITY_BYTES)
    previous = fields.octets(values, "previous", IDENTITY_BYTES) if "previous" in values else None
    if signed.signers != ((identity,) if previous is None else (identity, previous)):
        raise UserError("not signed by the identity that it names: whoever made it does not have that key")
    return Request(
        name=fields.name(fields.text(values, "name")),
        identity=identity,
        certificate=fields.certificate(values, "certificate", identity),
        made=fields.time(values, "made"),
        previous=previous,
    )


def read_request(path: Path) -> Request:
    """The request in a file; the line of a `UserError` names it."""
    text = read_public(path, _LARGEST)
    try:
        return parse_request(text)
    except UserError as problem:
        raise UserError(f"{shown(path)}: {problem}") from None
