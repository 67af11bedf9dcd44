"""Whose certificate it is: asked at every connection, from the newest roster."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from protocols.foundation.identifiers import PartyId
from protocols.session.identities import IdentityError
from protocols.session.site_keys import claimed, fingerprint, issued_at
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.fields import time_text
from secure_kg.provisioning.roster import Roster, load_roster
from secure_kg.provisioning.tls import trust

Stamp = tuple[int, int, int] | None


def member_of(
    roster: Roster,
    path: Path | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Callable[[bytes], PartyId | None]:
    """DER of a peer's TLS certificate -> number of the member whose identity issued it; None: refuse.

    `path`: read again when it changes. Only a newer version of the same federation, signed by the same coordinator, is
    taken; anything else is ignored, with one line to `report`. `tls`: the server's context, which then also lets in the
    identities that a newer version brings.
    """
    return Membership(roster, path, tls, report).number_of


class Membership:
    """The members of the newest roster."""

    def __init__(
        self, roster: Roster, path: Path | None, tls: ssl.SSLContext | None, report: Callable[[str], None]
    ) -> None:
        self.roster = roster
        self._path, self._tls, self._report = path, tls, report
        self._seen: Stamp = None  # so that a file that changed since the roster was read is read again
        self._told = ""

    def number_of(self, leaf: bytes) -> PartyId | None:
        """The member's number; None, and one line to `report`, for a certificate that lets nobody in."""
        self._refresh()
        try:
            return self._number_of(leaf, datetime.now(UTC))
        except (IdentityError, UserError) as problem:
            self._tell(f"refused a connection: {problem}")
            return None

    def _number_of(self, leaf: bytes, now: datetime) -> PartyId:
        self.roster.require_current(now)
        identity = claimed(leaf)
        member = next((one for one in self.roster.members if one.identity == identity), None)
        if member is None:
            raise IdentityError("a certificate of nobody in the federation")
        who = f"member {member.number} ({member.name})"
        if member.revoked:
            raise IdentityError(f"{who} was revoked")
        try:
            issued = issued_at(leaf, identity, "client", now)
        except IdentityError as problem:
            raise IdentityError(f"{who}: {problem}") from None
        if member.issued_from is not None and issued < member.issued_from:
            raise IdentityError(f"{who}: a revoked certificate, from before {time_text(member.issued_from)}")
        return member.number

    def _refresh(self) -> None:
        if self._path is None or (stamp := _stamp(self._path)) == self._seen:
            return
        self._seen = stamp
        before = self.roster
        try:
            newer = load_roster(self._path, fingerprint(before.coordinator))
            if newer.file_digest == before.file_digest:
                return
            if newer.coordinator != before.coordinator or newer.federation != before.federation:
                raise UserError(f"{shown(self._path)}: of another federation")
            if newer.version <= before.version:
                raise UserError(f"{shown(self._path)}: version {newer.version} does not follow {before.version}")
            if newer.server != before.server:
                raise UserError(f"{shown(self._path)}: names another server")
        except UserError as problem:
            self._tell(f"version {before.version} of the federation still holds: {problem}")
            return
        if self._tls is not None:
            known = {member.identity for member in before.members if not member.revoked}
            trust(self._tls, [one for one in newer.members if one.identity not in known and not one.revoked])
        self.roster = newer
        self._tell(f"version {newer.version} of the federation holds from now on")

    def _tell(self, line: str) -> None:
        """A line that was told last is not told again: a peer that tries on and on fills no log."""
        if line != self._told:
            self._told = line
            self._report(line)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
