"""Credentials against an active server, from a site's identity and the members of the roster.

The coordinator may be the active server. Its roster could name keys of its own for other members, and a signature by
the coordinator does not change that. So each site must have compared the members' fingerprints over another channel
(`note_roster` with `compared`); what the roster then says is what people have compared.
"""

from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.credentials import Credentials
from protocols.session.identities import PublicIdentity, directory_text
from protocols.session.site_keys import credentials_of, nobody
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.private_files import check_folder, write_private
from secure_kg.provisioning.record import own_number, read_record
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.runs.key_files import DIRECTORY, private_file

KEYS: Final = "keys"
"""The folder, in that of the site. The record of openings lies there against any adversary."""


def site_credentials(roster: Roster, site_folder: Path) -> Credentials:
    """What this site signs and checks with. In the place of a revoked member stands a key that nobody has.

    `UserError` unless a person at this site has said that the members' fingerprints were compared.
    """
    _compared_number(roster, site_folder)
    return credentials_of(SiteFolder.open(site_folder).identity_pem, _directory(roster))


def keys_folder(roster: Roster, site_folder: Path) -> Path:
    """The same credentials as a folder for the setting `keys`: `dataclasses.replace(settings, keys=str(...))`.

    The record of the sums that this site has helped to open is kept there, too, for all of its runs.
    """
    number = _compared_number(roster, site_folder)
    folder = site_folder / KEYS
    if not folder.is_symlink() and not folder.exists():
        try:
            folder.mkdir(mode=0o700)
        except OSError as problem:
            raise UserError(f"{shown(folder)}: cannot be created ({problem.strerror})") from None
    check_folder(folder)
    clients = [PublicIdentity(party, public.hex()) for party, public in _directory(roster).items()]
    write_private(private_file(folder, number), SiteFolder.open(site_folder).identity_pem)
    write_private(folder / DIRECTORY, directory_text(clients).encode())
    return folder


def _compared_number(roster: Roster, site_folder: Path) -> PartyId:
    number = own_number(roster, site_folder)
    if number == SERVER:
        raise UserError(f"{shown(site_folder)}: the server's identity signs nothing in a run")
    record = read_record(site_folder)
    compared = record.compared if record is not None else frozenset()
    for member in roster.members:
        if member.number != number and not member.revoked and member.identity not in compared:
            raise UserError(
                f"--adversary active: {shown(site_folder)}: nobody has compared the fingerprint of {member.name} with "
                "that site over another channel"
            )
    return number


def _directory(roster: Roster) -> dict[PartyId, bytes]:
    return {
        member.number: nobody(roster.federation, member.number) if member.revoked else member.identity
        for member in roster.members
    }
