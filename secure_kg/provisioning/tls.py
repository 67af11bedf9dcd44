"""TLS contexts of both ends: TLS 1.3 only, both sides known by certificates that pinned identities have issued.

No authority of the system is trusted. The server's trust anchors are the identities of the members, a site's only one
is the identity of the server. Below an anchor there is one leaf and nothing else (path length 0).

A context may live longer than a leaf. Before each handshake it takes up a leaf that another command has renewed, and
once an hour it sees whether its own one comes to its end. The thread that shakes hands does that.
"""

import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from protocols.session.identities import IdentityError
from protocols.session.site_keys import Use, issued_at
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.roster import Member, Roster
from secure_kg.provisioning.site_folder import SiteFolder

_LOOKED_AT: Final = 3600.0
"""Seconds after which a leaf is looked at again, although its file has not changed."""
_AGAIN: Final = 60.0
"""The least time between two looks: whoever reaches the port must not decide how often files are read."""


def server_tls(roster: Roster, site_folder: Path) -> ssl.SSLContext:
    """The server's context; it asks for a certificate of a client that is or was a member, and lets nobody else speak.

    Whose it is, and whether it still lets somebody in, `member_of` says, at every connection and request.
    """
    site = SiteFolder.open(site_folder)
    if site.identity != roster.server:
        raise UserError(f"{shown(site_folder)}: not the identity that the federation names as its server")
    context = RenewingContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context)
    context.follow(site, "server", None)
    # A resumed session would skip the certificate, and with it the question whether its member was revoked meanwhile.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    # Of those that were revoked, too: only a handshake that succeeds tells which member it is that is refused then.
    trust(context, list(roster.members))
    return context


def client_tls(roster: Roster, site_folder: Path) -> ssl.SSLContext:
    """A site's context. Its handshakes fail unless the server shows a leaf of the server's identity."""
    site = SiteFolder.open(site_folder)
    own = next((member for member in roster.members if member.identity == site.identity and not member.revoked), None)
    if own is None:
        raise UserError(f"{shown(site_folder)}: this site's identity is no member of the federation")
    context = PinnedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.identity = roster.server
    # Not the name in the URL: addresses change, proxies and tunnels give the server other names, and whoever controls
    # a name in the DNS must not be taken for the server. The name in the leaf is derived from the server's identity,
    # and `PinnedContext` compares it, with every other field, at the end of each handshake.
    context.check_hostname = False
    _restrict(context)
    context.follow(site, "client", own.issued_from)
    context.load_verify_locations(cadata=roster.server_certificate)
    return context


def trust(context: ssl.SSLContext, members: list[Member]) -> None:
    """Let the identities of these members through a handshake, too."""
    if members:
        context.load_verify_locations(cadata=b"".join(member.certificate for member in members))


class _CheckedObject(ssl.SSLObject):
    """A connection of asyncio that is checked at the end of its handshake."""

    def do_handshake(self) -> None:
        super().do_handshake()
        _check_peer(self.context, self.getpeercert(True))


class _CheckedSocket(ssl.SSLSocket):
    """A connection over a socket that is checked at the end of its handshake."""

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _check_peer(self.context, self.getpeercert(True))


class RenewingContext(ssl.SSLContext):
    """Takes up a renewed leaf before each handshake; asyncio and sockets begin one by these two methods."""

    site: SiteFolder
    before_handshake: Callable[[], None] = staticmethod(lambda: None)
    """Called before each handshake, by the thread that begins it."""
    _use: Use
    _issued_from: datetime | None
    _loaded: object = None
    _next_look: float = 0.0
    _not_before: float = 0.0

    def follow(self, site: SiteFolder, use: Use, issued_from: datetime | None) -> None:
        """Use the site's leaf, which is made anew when it comes to its end; `UserError` if there can be none."""
        self.site, self._use, self._issued_from = site, use, issued_from
        self.take_up()

    def take_up(self) -> None:
        """The leaf as it is now; `UserError` if there is none, and then the one before goes on."""
        for last in (False, True):
            path = self.site.leaf_file(self._use, self._issued_from)
            found = _version_of(path)
            if found == self._loaded:
                break
            try:
                self.load_cert_chain(path, password=lambda: b"")  # an encrypted key would ask for its password here
            except (OSError, ValueError):
                # The file is read twice, for key and certificate, and another command may renew it in between.
                if last:
                    raise UserError(
                        f"{shown(path)}: not a TLS key with its certificate; remove it, and it is made again"
                    ) from None
            else:
                self._loaded = found
                break
        self._next_look, self._not_before = time.monotonic() + _LOOKED_AT, time.monotonic() + _AGAIN

    def wrap_bio(self, *values: Any, **options: Any) -> ssl.SSLObject:
        self._refresh()
        return super().wrap_bio(*values, **options)

    def wrap_socket(self, *values: Any, **options: Any) -> ssl.SSLSocket:
        self._refresh()
        return super().wrap_socket(*values, **options)

    def _refresh(self) -> None:
        self.before_handshake()
        now = time.monotonic()
        if now < self._not_before:
            return
        if now >= self._next_look or _version_of(self.site.leaf_path(self._use)) != self._loaded:
            self._not_before = now + _AGAIN
            with suppress(UserError):  # the leaf that is loaded may do for weeks; if not, the peer refuses it
                self.take_up()


class PinnedContext(RenewingContext):
    """A site's context: after OpenSSL's own checks the server's leaf is compared with the pinned identity."""

    identity: bytes
    peer: Use = "server"
    sslobject_class = _CheckedObject
    sslsocket_class = _CheckedSocket


def _check_peer(context: ssl.SSLContext, leaf: bytes | None) -> None:
    if not isinstance(context, PinnedContext):
        raise ssl.SSLCertVerificationError("a connection of another context")
    try:
        issued_at(leaf or b"", context.identity, context.peer, datetime.now(UTC))
    except IdentityError as problem:
        raise ssl.SSLCertVerificationError(f"the server has shown {problem}") from None


def _version_of(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size


def _restrict(context: ssl.SSLContext) -> None:
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
