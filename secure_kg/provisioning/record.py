"""A site's own record: whose rosters it accepts, which version it has seen last, whose fingerprints were compared.

A signature does not say that a roster is the newest one. Whoever hands files on could show a site one from before a
revocation; the record keeps the last version, and no older one is accepted. Nor is another text under the same version
number: a coordinator that signs two of them tells different sites different things. Server and settings are what the
site has agreed to: a version that names others is refused, for the coordinator may be the server that gains by them.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.site_keys import IDENTITY_BYTES, fingerprint
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import json_of
from secure_kg.foundation.visible import shown
from secure_kg.provisioning import fields
from secure_kg.provisioning.private_files import check_folder, held, read_private, write_private
from secure_kg.provisioning.roster import (
    FEDERATION_BYTES,
    LARGEST_ROSTER,
    LARGEST_VERSION,
    MOST_MEMBERS,
    Roster,
    parse_roster,
)
from secure_kg.provisioning.signed_text import read_public
from secure_kg.provisioning.site_folder import DEFAULT_SITE, SiteFolder

_FILE: Final = "record.json"


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """What a site has accepted so far."""

    coordinator: bytes
    federation: bytes
    version: int
    file_digest: bytes
    server: bytes
    settings: bytes
    """Digest of the settings, without the number of members (`Roster.settings_digest`)."""
    compared: frozenset[bytes] = frozenset()
    """Identities of members whose fingerprints a person at this site has compared with theirs."""

    def require_next(self, roster: Roster) -> None:
        """`UserError` for a roster that does not follow what was accepted before."""
        if roster.coordinator != self.coordinator:
            raise UserError("signed by another coordinator than the one this site has pinned")
        if roster.federation != self.federation:
            raise UserError("of another federation than the one this site takes part in; make a new site folder for it")
        if roster.server != self.server:
            raise UserError("names another server than the one this site has agreed to; that takes a new federation")
        if roster.settings_digest != self.settings:
            raise UserError("has other settings than those this site has agreed to; that takes a new federation")
        if roster.version < self.version:
            raise UserError(f"version {roster.version}, but this site has seen version {self.version}: an old one")
        if roster.version == self.version and roster.file_digest != self.file_digest:
            raise UserError(f"another text than the version {self.version} that this site has seen; ask the "
                            "coordinator why there are two")  # fmt: skip


def read_record(folder: Path) -> SiteRecord | None:
    """None if nothing was accepted yet."""
    path = folder / _FILE
    check_folder(folder)
    if not path.is_symlink() and not path.exists():
        return None
    content = read_private(path)
    try:
        values: dict[str, Any] = json_of(content)
        compared = values.get("compared", [])
        if not isinstance(compared, list) or len(compared) > MOST_MEMBERS:
            raise UserError("'compared' must be a list")
        return SiteRecord(
            fields.octets(values, "coordinator", IDENTITY_BYTES),
            fields.octets(values, "federation", FEDERATION_BYTES),
            fields.number(values, "version", LARGEST_VERSION),
            fields.octets(values, "file_digest", 32),
            fields.octets(values, "server", IDENTITY_BYTES),
            fields.octets(values, "settings", 32),
            frozenset(fields.octets({"compared": one}, "compared", IDENTITY_BYTES) for one in compared),
        )
    except UserError as problem:
        raise UserError(f"{shown(path)}: {problem}") from None
    except (ValueError, AttributeError):
        raise UserError(f"{shown(path)}: not the record of a site") from None


def note_roster(folder: Path, roster: Roster, *, compared: bool = False) -> SiteRecord:
    """Note that this site accepts the roster; `UserError` if it does not follow what was accepted before.

    `compared`: a person says that the fingerprints of all members were compared.
    """
    check_folder(folder)
    with held(folder):  # of two commands with different versions the older one must not be written last
        return note_held(folder, roster, compared=compared)


def note_held(folder: Path, roster: Roster, *, compared: bool = False) -> SiteRecord:
    """The same for a caller that has the folder to itself (`held`)."""
    before = read_record(folder)
    if before is not None:
        before.require_next(roster)
    known = before.compared if before is not None else frozenset()
    record = SiteRecord(
        roster.coordinator, roster.federation, roster.version, roster.file_digest, roster.server,
        roster.settings_digest, known,
    )  # fmt: skip
    if compared:
        record = replace(record, compared=frozenset(one.identity for one in roster.members if not one.revoked))
    if record != before:
        _write(folder, record)
    return record


def accepted_roster(path: Path, site_folder: Path) -> Roster:
    """The roster in `path` for the site (or server, or coordinator) whose files are in `site_folder`: signed by the
    coordinator that `note_roster` has pinned, not expired, and no older version than this site has seen before.

    A newer version is noted. `UserError` in one line otherwise.
    """
    folder = SiteFolder.open(site_folder).path
    record = read_record(folder)
    if record is None:
        where = "" if site_folder == DEFAULT_SITE else f" --folder {shown(site_folder)}"
        raise UserError(
            f"{shown(site_folder)}: has not accepted a coordinator yet; compare its fingerprint first: "
            f"{command('launch.site')} check {shown(path)}{where} --fingerprint TEXT"
        )
    text = read_public(path, LARGEST_ROSTER)
    try:
        roster = parse_roster(text, fingerprint(record.coordinator))
        note_roster(folder, roster)  # also if it has expired: it has been seen, and an older one may not have
        roster.require_current(datetime.now(UTC))
    except UserError as problem:
        raise UserError(f"{shown(path)}: {problem}") from None
    return roster


def own_number(roster: Roster, site_folder: Path) -> PartyId:
    """The number of the member whose identity is in `site_folder`; 0 for the server's. `UserError` for any other, and
    for a revoked one.

    If the roster has the identity that a rotation was about to bring, that one is this site's from now on.
    """
    site = SiteFolder.open(site_folder)
    upcoming = site.upcoming()
    if upcoming is not None and any(member.identity == upcoming for member in roster.members):
        site.take_next()
    identity = site.identity
    if identity == roster.server:
        return SERVER
    for member in roster.members:
        if member.identity == identity:
            if member.revoked:
                raise UserError(f"{shown(site_folder)}: member {member.number} of this federation was revoked")
            return member.number
    raise UserError(f"{shown(site_folder)}: this site's identity ({fingerprint(identity)}) is no member of the "
                    "federation; pass its request on to the coordinator")  # fmt: skip


def _write(folder: Path, record: SiteRecord) -> None:
    values = {
        "coordinator": record.coordinator.hex(),
        "federation": record.federation.hex(),
        "version": record.version,
        "file_digest": record.file_digest.hex(),
        "server": record.server.hex(),
        "settings": record.settings.hex(),
        "compared": sorted(identity.hex() for identity in record.compared),
    }
    write_private(folder / _FILE, (json.dumps(values, indent=2) + "\n").encode())
