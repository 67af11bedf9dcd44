"""Whose certificate it is: asked at every connection, from the newest roster."""

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import PartyId
from protocols.session.identities import IdentityError
from protocols.session.site_keys import claimed, fingerprint, issued_at
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.fields import time_text
from secure_kg.provisioning.record import note_roster
from secure_kg.provisioning.roster import Member, Roster, load_roster
from secure_kg.provisioning.tls import RenewingContext, trust

Stamp = tuple[int, int, int, int] | None
_PAUSE: Final = 60.0
"""Seconds between two lines about connections of one member, or of strangers."""
_AGAIN: Final = 10.0
"""Seconds after which a newer file that could not be taken is tried again: what failed may have been the system."""


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
    identities that a newer version brings, before the handshake of the first of them; and the version is noted in the
    server's folder, so that no older one is taken when it starts again.
    """
    membership = Membership(roster, path, tls, report)
    if isinstance(tls, RenewingContext):
        tls.before_handshake = membership.refresh
    return membership.number_of


class Membership:
    """The members of the newest roster."""

    def __init__(
        self, roster: Roster, path: Path | None, tls: ssl.SSLContext | None, report: Callable[[str], None]
    ) -> None:
        self.roster = roster
        self._path, self._tls, self._report = path, tls, report
        self._seen: Stamp = None  # so that a file that changed since the roster was read is read again
        self._retry = float("inf")
        self._told = ""
        self._told_at: dict[int, float] = {}
        self._silenced: dict[int, int] = {}

    def number_of(self, leaf: bytes) -> PartyId | None:
        """The member's number; None, and one line to `report`, for a certificate that lets nobody in."""
        self.refresh()
        try:
            return self._number_of(leaf, datetime.now(UTC))
        except (IdentityError, UserError) as problem:
            self._tell_refusal(leaf, f"refused a connection: {problem}")
            return None

    def _number_of(self, leaf: bytes, now: datetime) -> PartyId:
        self.roster.require_current(now)
        identity = claimed(leaf)
        member = self._member(identity)
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

    def _member(self, identity: bytes) -> Member | None:
        return next((one for one in self.roster.members if one.identity == identity), None)

    def refresh(self) -> None:
        """Take a newer version, if there is one."""
        if self._path is None or ((stamp := _stamp(self._path)) == self._seen and time.monotonic() < self._retry):
            return
        self._seen, self._retry = stamp, float("inf")
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
            if isinstance(self._tls, RenewingContext):
                note_roster(self._tls.site.path, newer)
        except UserError as problem:
            self._retry = time.monotonic() + _AGAIN
            self._tell(f"version {before.version} of the federation still holds: {problem}")
            return
        if self._tls is not None:
            known = {member.identity for member in before.members}
            trust(self._tls, [one for one in newer.members if one.identity not in known])
        self.roster = newer
        self._tell(f"version {newer.version} of the federation holds from now on")

    def _tell(self, line: str) -> None:
        """A line that was told last is not told again."""
        if line != self._told:
            self._told = line
            self._report(line)

    def _tell_refusal(self, leaf: bytes, line: str) -> None:
        """One line in a while about each member, whatever is wrong, and one about all others: whoever tries on and on,
        with the same certificate or with ever other ones, fills no log."""
        try:
            member = self._member(claimed(leaf))
        except IdentityError:
            member = None
        kind, now = 0 if member is None else int(member.number), time.monotonic()
        if now - self._told_at.get(kind, -_PAUSE) < _PAUSE:
            self._silenced[kind] = self._silenced.get(kind, 0) + 1
            return
        self._told_at[kind] = now
        more = self._silenced.pop(kind, 0)
        self._report(f"{line} ({more} more since the last line)" if more else line)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
