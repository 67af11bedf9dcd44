"""Versions of federation.toml: the coordinator approves requests, revokes members, and signs each change as a whole.

Every change is a new version. Numbers of members never change and are not given away again, so that a run goes on: a
revoked member is one more dropout. A request can take a revoked member's place if the coordinator says so.
"""

import dataclasses
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import PartyId
from protocols.session.site_keys import BACKDATED, fingerprint
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning import fields
from secure_kg.provisioning.private_files import held
from secure_kg.provisioning.record import note_held, read_record
from secure_kg.provisioning.request import Request
from secure_kg.provisioning.roster import (
    FEDERATION_BYTES,
    LARGEST_ROSTER,
    MOST_MEMBERS,
    Draft,
    Member,
    Roster,
    parse_roster,
    portable,
    roster_text,
    with_members,
)
from secure_kg.provisioning.signed_text import read_public
from secure_kg.provisioning.site_folder import ROSTER, SiteFolder
from secure_kg.runs.run_folder import write_whole

DEFAULT_DAYS: Final = 365
MOST_DAYS: Final = 3650


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator's folder and the newest roster that it has signed."""

    site: SiteFolder
    roster: Roster

    @classmethod
    def new(
        cls, folder: Path, name: str, address: str, settings: RunConfig, *, days: int, server: Request | None
    ) -> "Coordinator":
        """A fresh identity and the first version, without members. `server`: the site that runs the server; None: the
        coordinator does, under its own identity."""
        fields.address(address)
        _check_days(days)
        if server is not None and server.previous is not None:
            raise UserError("the server's request is a rotation; a new federation needs a plain one")
        site = SiteFolder.new(folder, name)
        now = _now()
        draft = Draft(
            federation=secrets.token_bytes(FEDERATION_BYTES),
            version=1,
            made=now,
            expires=now + timedelta(days=days),
            address=address,
            server=site.identity if server is None else server.identity,
            server_certificate=site.certificate if server is None else server.certificate,
            settings=dataclasses.replace(portable(settings), clients=None),
            members=(),
        )
        return cls(site, _signed(site, draft))

    @classmethod
    def open(cls, folder: Path) -> "Coordinator":
        """`UserError` for a folder that is not a coordinator's, or whose roster is older than its record."""
        site = SiteFolder.open(folder)
        path = folder / ROSTER
        text = read_public(path, LARGEST_ROSTER)
        try:
            roster = parse_roster(text, fingerprint(site.identity))
            record = read_record(folder)
            if record is not None:
                record.require_next(roster)
        except UserError as problem:
            raise UserError(f"{shown(path)}: {problem}") from None
        return cls(site, roster)

    @property
    def path(self) -> Path:
        """federation.toml: public, for every site and the server."""
        return self.site.path / ROSTER

    def approve(self, requests: Sequence[Request], in_place_of: Member | None = None) -> tuple[Member, ...]:
        """The members once these requests are in; nothing is signed yet. `UserError` for one that must not be."""
        members, retired = list(self.roster.members), self.roster.retired
        before = {one.identity for one in members}
        if in_place_of is not None and (len(requests) != 1 or not in_place_of.revoked):
            raise UserError("--in-place-of takes one request, and a member that was revoked")
        for request in requests:
            if request.identity in (self.roster.coordinator, self.roster.server):
                raise UserError(f"{request.name}: has the identity of the coordinator or the server")
            if request.identity in retired:
                raise UserError(f"{request.name}: has an identity that was retired; the site needs a new one")
            found = next((one for one in members if one.identity == request.identity), None)
            if found is not None:
                state = "was revoked" if found.revoked else "is a member already"
                raise UserError(f"{request.name}: this identity {state}, as number {found.number}")
            if request.identity in before:
                raise UserError(f"{request.name}: has an identity that another of these requests replaces")
            if request.previous is not None and request.previous not in before:
                # Nor one that another of these requests brings: it would be in no version, and so never be retired.
                raise UserError(f"{request.name}: replaces an identity that is no member")
            entry = _placed(request, members, in_place_of)
            members[entry.number - 1 : entry.number] = [entry]
        if len(members) > MOST_MEMBERS:
            raise UserError(f"more than {MOST_MEMBERS} members")
        return tuple(members)

    def revoke(self, member: Member, *, certificates_only: bool) -> tuple[Member, ...]:
        """The members without this one, or without all TLS certificates that it has issued up to now."""
        if member.revoked:
            raise UserError(f"member {member.number} ({member.name}) was revoked already")
        # A clock that is ahead dates certificates in the future, and those that are valid by now are dated up to
        # `BACKDATED` ahead. One that is dated there itself is valid from now on. Never earlier than before: a clock
        # that was set back since would let in what was revoked.
        issued_from = _now() + BACKDATED
        changed = (
            dataclasses.replace(member, issued_from=max(issued_from, member.issued_from or issued_from))
            if certificates_only
            else dataclasses.replace(member, revoked=True)
        )
        return tuple(changed if one.number == member.number else one for one in self.roster.members)

    def publish(
        self, members: Sequence[Member], *, address: str | None = None, days: int | None = None
    ) -> "Coordinator":
        """A new version with these members, signed and written in the place of the old one."""
        before, now = self.roster, _now()
        if days is not None:
            _check_days(days)
        if address is not None:
            fields.address(address)
        gone = {one.identity for one in before.members} - {one.identity for one in members}
        draft = with_members(
            Draft(**{entry.name: getattr(before, entry.name) for entry in dataclasses.fields(Draft)}),
            members,
            version=before.version + 1,
            made=now,
            expires=now + (before.expires - before.made if days is None else timedelta(days=days)),
            address=before.address if address is None else address,
            retired=(*before.retired, *sorted(gone)),
        )
        return Coordinator(self.site, _signed(self.site, draft, before))

    def member(self, who: str) -> Member:
        """By number or name. A member that calls itself by the number of another one is not taken for it."""
        for one in self.roster.members:
            if who == str(one.number):
                return one
        for one in self.roster.members:
            if fields.folded(who) == fields.folded(one.name):
                return one
        raise UserError(f"no member {who[:40]!a} in this federation")


def _placed(request: Request, members: Sequence[Member], in_place_of: Member | None) -> Member:
    """The request as a member: under a new number, or that of the identity or member that it replaces."""
    if request.previous is not None:
        old = next((one for one in members if one.identity == request.previous), None)
        if old is None or old.revoked:
            raise UserError(f"{request.name}: replaces an identity that is no member")
        if in_place_of is not None:
            raise UserError("--in-place-of is for a new site, not for a rotation")
        # The name stays: who it is was settled when the member was approved. Under another one a person might compare
        # the fingerprint with somebody else.
        if fields.folded(request.name) != fields.folded(old.name):
            raise UserError(f"{request.name}: asks for a new identity of member {old.number}, which is {old.name}")
        return Member(old.number, old.name, request.certificate, request.identity)
    number = PartyId(len(members) + 1) if in_place_of is None else in_place_of.number
    return Member(number, request.name, request.certificate, request.identity)


def _signed(site: SiteFolder, draft: Draft, before: Roster | None = None) -> Roster:
    """Sign, read back as a site would, write and note. Nothing is handed out before both are done.

    Two commands at once must not sign two texts under one version number: sites that have seen one refuse the other.
    """
    text = roster_text(draft, site.identity_pem)
    roster = parse_roster(text, fingerprint(site.identity))
    with held(site.path):
        record = read_record(site.path)
        path = site.path / ROSTER
        # The file as well: a command that was killed between the two writes has signed this version already.
        on_disk = parse_roster(read_public(path, LARGEST_ROSTER), fingerprint(site.identity)) if before else None
        changed = before is not None and on_disk is not None and on_disk.file_digest != before.file_digest
        if changed or (0 if record is None else record.version) >= roster.version:
            raise UserError(f"{shown(path)}: was changed by another command meanwhile; try again")
        write_whole(path, text.encode())
        note_held(site.path, roster)
    return roster


def _check_days(days: int) -> None:
    if not 1 <= days <= MOST_DAYS:
        raise UserError(f"--days must lie between 1 and {MOST_DAYS}")


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
