"""federation.toml: who takes part, where the server is, and under which settings; signed by the coordinator.

Nothing of it is parsed before the signature was checked against the fingerprint that the reader has pinned. The text is
the same for the same content, and is checked as bytes, so it is valid on any machine or on none.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import tomli_w

from protocols.foundation.digests import digest
from protocols.foundation.identifiers import PartyId
from protocols.session.site_keys import IDENTITY_BYTES, fingerprint
from secure_kg import __version__
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning import fields
from secure_kg.provisioning.signed_text import read_public, signed_text, split_signed

KIND: Final = "federation"
FORMAT: Final = 1
MOST_MEMBERS: Final = 1000
_MOST_RETIRED: Final = 10_000
LARGEST_VERSION: Final = 2**31 - 1
FEDERATION_BYTES: Final = 16
LARGEST_ROSTER: Final = 1 << 21
_OF_ONE_PARTY: Final = ("client_data", "columns", "device", "keys")
_KEYS_LATER: Final = "site"
"""In the place of `keys`, without which settings against an active server do not stand: each site has its own."""


@dataclass(frozen=True, slots=True)
class Member:
    """A site by its number. `certificate`: DER of its identity's own certificate."""

    number: PartyId
    name: str
    certificate: bytes
    identity: bytes
    """The Ed25519 public key, 32 bytes."""
    revoked: bool = False
    issued_from: datetime | None = None
    """TLS certificates that were issued earlier are refused."""

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.identity)


@dataclass(frozen=True, slots=True)
class Draft:
    """What the coordinator decides, before it is signed."""

    federation: bytes
    """16 random bytes: two federations of one coordinator are not taken for each other."""
    version: int
    made: datetime
    expires: datetime
    address: str
    server: bytes
    """The server's identity: an Ed25519 public key, 32 bytes."""
    server_certificate: bytes
    settings: RunConfig
    """`clients` is the number of members, revoked ones included. Against an active server `keys` holds a placeholder:
    credentials come from `signing`."""
    members: tuple[Member, ...]
    """By number, 1 to n without gaps; a revoked one keeps its number, and is a dropout of every run."""
    retired: tuple[bytes, ...] = ()
    """Identities that were replaced, and never become members again."""

    def __post_init__(self) -> None:
        _check_members(self.members, self.retired, self.server)

    def member(self, number: int) -> Member | None:
        """The member of that number, revoked or not."""
        return self.members[number - 1] if 1 <= number <= len(self.members) else None

    @property
    def server_url(self) -> str:
        """https://host:port"""
        host, port = fields.address(self.address)
        return f"https://{host}:{port}"


@dataclass(frozen=True, slots=True)
class Roster(Draft):
    """What federation.toml says, once its signature was checked."""

    coordinator: bytes = b""
    """The identity that has signed it."""
    file_digest: bytes = b""
    """32 bytes: of the signed text, different in each version."""
    software: str = ""
    """The coordinator's version of this software."""

    @property
    def digest(self) -> bytes:
        """32 bytes: what both ends of a link must agree on (federation, coordinator, server, number of members and
        settings). The same in all versions in which only keys were rotated, members revoked, or address and expiry
        changed: sites that have not got the newest version yet go on."""
        return digest(b"secure-kg federation 1", self.federation, self.coordinator, self.server, self.settings.digest())

    @property
    def settings_digest(self) -> bytes:
        """32 bytes: of the settings, which stay as they are for as long as the federation exists. Without the number of
        members, which does not."""
        return dataclasses.replace(self.settings, clients=None).digest()

    def require_current(self, now: datetime) -> None:
        """`UserError` once the roster has expired."""
        if now > self.expires:
            raise UserError(f"expired at {fields.time_text(self.expires)}; ask the coordinator for a newer version")


def load_roster(path: Path, coordinator: str) -> Roster:
    """The roster in `path`; `UserError` unless the identity with the fingerprint `coordinator` has signed it and it has
    not expired. For a party with a site folder `accepted_roster` is safer: it also refuses older versions."""
    text = read_public(path, LARGEST_ROSTER)
    try:
        roster = parse_roster(text, coordinator)
        roster.require_current(datetime.now(UTC))
    except UserError as problem:
        raise UserError(f"{shown(path)}: {problem}") from None
    return roster


def signer_of(path: Path) -> bytes:
    """The identity that has signed the roster in `path`, whoever that is: to be compared before anything is read."""
    text = read_public(path, LARGEST_ROSTER)
    try:
        signers = split_signed(text, KIND).signers
        if len(signers) != 1:
            raise UserError("signed by more than one identity")
    except UserError as problem:
        raise UserError(f"{shown(path)}: {problem}") from None
    return signers[0]


def roster_text(draft: Draft, coordinator_pem: bytes) -> str:
    """federation.toml, signed."""
    settings = _shared(draft.settings)
    values: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "software": __version__,
        "federation": draft.federation.hex(),
        "version": draft.version,
        "made": fields.time_text(draft.made),
        "expires": fields.time_text(draft.expires),
        "settings_digest": draft.settings.digest().hex(),
        "retired": [identity.hex() for identity in draft.retired],
        "server": {
            "address": draft.address,
            "identity": draft.server.hex(),
            "certificate": fields.encoded(draft.server_certificate),
        },
        "settings": settings,
        "member": [_entry(member) for member in draft.members],
    }
    return signed_text(tomli_w.dumps(values), KIND, [coordinator_pem])


def parse_roster(text: str, coordinator: str) -> Roster:
    """The roster in a text; `UserError` unless the identity with that fingerprint signed it. It may have expired."""
    fields.digits_of(coordinator)
    signed = split_signed(text, KIND)
    if len(signed.signers) != 1 or not fields.same_fingerprint(signed.signers[0], coordinator):
        raise UserError("signed by another identity than the coordinator's fingerprint says")
    values = signed.values()
    if values.get("kind") != KIND or type(values.get("format")) is not int or values["format"] != FORMAT:
        raise UserError(f"not a federation of format {FORMAT}; this site or the coordinator needs an update")
    fields.only(values, "kind", "format", "software", "federation", "version", "made", "expires", "settings_digest",
                "retired", "server", "settings", "member")  # fmt: skip
    server, members = _table(values, "server"), _tables(values, "member")
    fields.only(server, "address", "identity", "certificate")
    identity = fields.octets(server, "identity", IDENTITY_BYTES)
    fields.address(fields.text(server, "address"))
    found = tuple(_member(position, table) for position, table in enumerate(members, start=1))
    roster = Roster(
        federation=fields.octets(values, "federation", FEDERATION_BYTES),
        version=fields.number(values, "version", LARGEST_VERSION),
        made=fields.time(values, "made"),
        expires=fields.time(values, "expires"),
        address=server["address"],
        server=identity,
        server_certificate=fields.certificate(server, "certificate", identity),
        settings=_settings(_table(values, "settings"), fields.octets(values, "settings_digest", 32), len(found)),
        members=found,
        retired=_retired(values.get("retired")),
        coordinator=signed.signers[0],
        file_digest=digest(signed.body.encode()),
        software=fields.text(values, "software"),
    )
    if any(member.identity == roster.coordinator for member in roster.members):
        raise UserError("a member has the coordinator's identity")
    return roster


def with_members(draft: Draft, members: Sequence[Member], **changes: Any) -> Draft:
    """The draft with other members, and settings for so many."""
    settings = dataclasses.replace(draft.settings, clients=len(members) or None)
    return dataclasses.replace(draft, members=tuple(members), settings=settings, **changes)


def portable(settings: RunConfig) -> RunConfig:
    """Without what concerns one party alone."""
    keys = _KEYS_LATER if settings.adversary == "active" else None
    return dataclasses.replace(settings, client_data=None, columns="", device="auto", keys=keys)


def _shared(settings: RunConfig) -> dict[str, Any]:
    return {name: value for name, value in settings.told().items() if name not in (*_OF_ONE_PARTY, "clients")}


def _settings(values: dict[str, Any], agreed: bytes, members: int) -> RunConfig:
    """The run's settings. Their digest is compared: another version might read the same names in another way."""
    for name in (*_OF_ONE_PARTY, "clients"):
        if name in values:
            raise UserError(f"[settings]: '{name}' is not the coordinator's to set")
    if members:
        values = {**values, "clients": members}
    if values.get("adversary") == "active":
        values = {**values, "keys": _KEYS_LATER}
    try:
        settings = RunConfig.from_toml(tomli_w.dumps(values), "[settings]")
    except (TypeError, ValueError):
        raise UserError("[settings]: not those of a run") from None
    if settings.digest() != agreed:
        raise UserError("'settings_digest' does not fit the settings: this software is of another version, or they "
                        "were not made by it")  # fmt: skip
    return settings


def _entry(member: Member) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "number": member.number,
        "name": member.name,
        "identity": member.identity.hex(),
        "certificate": fields.encoded(member.certificate),
    }
    if member.revoked:
        entry["revoked"] = True
    if member.issued_from is not None:
        entry["issued_from"] = fields.time_text(member.issued_from)
    return entry


def _member(position: int, table: dict[str, Any]) -> Member:
    try:
        fields.only(table, "number", "name", "identity", "certificate", "revoked", "issued_from")
        if fields.number(table, "number", MOST_MEMBERS) != position:
            raise UserError("members must have the numbers 1, 2, 3 and so on, each once")
        identity = fields.octets(table, "identity", IDENTITY_BYTES)
        revoked = table.get("revoked", False)
        if type(revoked) is not bool:
            raise UserError("'revoked' must be true or false")
        return Member(
            number=PartyId(position),
            name=fields.name(fields.text(table, "name")),
            certificate=fields.certificate(table, "certificate", identity),
            identity=identity,
            revoked=revoked,
            issued_from=fields.time(table, "issued_from") if "issued_from" in table else None,
        )
    except UserError as problem:
        raise UserError(f"[[member]] table {position}: {problem}") from None


def _check_members(members: Sequence[Member], retired: Sequence[bytes], server: bytes) -> None:
    """Two members with one key could pass each other's signatures off as their own."""
    owners: dict[object, int] = {}
    for member in members:
        if member.identity == server:
            raise UserError(f"member {member.number} has the server's identity")
        if member.identity in retired:
            raise UserError(f"member {member.number} has an identity that was retired")
        for what, key in (("name", fields.folded(member.name)), ("identity", member.identity)):
            if (what, key) in owners:
                raise UserError(f"members {owners[what, key]} and {member.number} have the same {what}")
            owners[what, key] = member.number


def _table(values: dict[str, Any], key: str) -> dict[str, Any]:
    found = values.get(key)
    if not isinstance(found, dict):
        raise UserError(f"'{key}' must be a table [{key}]")
    return found


def _tables(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = values.get(key)
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise UserError(f"'{key}' must be a list of tables [[{key}]]")
    if len(found) > MOST_MEMBERS:
        raise UserError(f"more than {MOST_MEMBERS} members")
    return found


def _retired(found: Any) -> tuple[bytes, ...]:
    if not isinstance(found, list):
        raise UserError("'retired' must be a list of identities")
    if len(found) > _MOST_RETIRED:
        raise UserError(f"more than {_MOST_RETIRED} retired identities; make a new federation")
    return tuple(fields.octets({"retired": one}, "retired", IDENTITY_BYTES) for one in found)
