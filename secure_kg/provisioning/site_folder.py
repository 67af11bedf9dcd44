"""A site's private files: mode 0600 in a folder of mode 0700, refused otherwise.

    identity.key      the Ed25519 identity: PKCS8 PEM without encryption; it never leaves the site
    tls-client.pem    TLS key and certificate, issued by the identity; made anew when they come to their end
    tls-server.pem    the same, of the server
    site.json         the site's name
    request.toml      public: what is passed on to the coordinator
    record.json       whose rosters the site accepts, and the last version it has seen (`record`)
    keys/             what a run against an active server reads (`signing`)
    next-identity.key the identity of a rotation that is not in the roster yet

Threat model: other users of the machine. Misuse: whoever copies the folder is this site, until it is revoked.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from protocols.session.identities import IdentityError, new_identity
from protocols.session.site_keys import Use, certificate_of, expiry_of, issue, issued_at, leaf_in, public_of
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import json_of
from secure_kg.foundation.visible import shown
from secure_kg.provisioning import fields
from secure_kg.provisioning.private_files import (
    check_folder,
    check_private,
    make_folder,
    read_private,
    write_new_private,
    write_private,
)

DEFAULT_SITE: Final = Path("site")
"""The usual folder of a site."""
DEFAULT_COORDINATOR: Final = Path("coordinator")
"""The usual folder of a coordinator."""
ROSTER: Final = "federation.toml"
REQUEST: Final = "request.toml"
_IDENTITY: Final = "identity.key"
_NEXT: Final = "next-identity.key"
_SITE: Final = "site.json"
RENEWED: Final = timedelta(days=30)
"""A TLS certificate that ends within this time is made anew when a context is made."""
_FURTHEST: Final = timedelta(days=1)
"""A certificate that is dated further ahead is valid nowhere yet."""


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The private files of a site, checked when opened."""

    path: Path
    name: str

    @classmethod
    def new(cls, path: Path, name: str) -> "SiteFolder":
        """A fresh identity and TLS key, made here."""
        fields.name(name)
        make_folder(path)
        # The identity first, and exclusively: of two commands at once only one goes on.
        write_new_private(path / _IDENTITY, new_identity().private_pem)
        write_new_private(path / _SITE, json.dumps({"name": name}).encode() + b"\n")
        return cls(path, name)

    @classmethod
    def open(cls, path: Path) -> "SiteFolder":
        """`UserError` for a folder that is missing, not private, or none of a site."""
        if not path.is_symlink() and not path.exists():
            site, coordinator = f"{command('launch.site')} new", f"{command('launch.federation')} new"
            raise UserError(f"{shown(path)}: no such folder; {site} makes a site's, {coordinator} a coordinator's")
        check_folder(path)
        check_private(path / _IDENTITY)
        where = path / _SITE
        try:
            name = json_of(read_private(where))["name"]
            return cls(path, fields.name(name))
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{shown(where)}: not the description of a site") from None

    @property
    def identity_pem(self) -> bytes:
        return read_private(self.path / _IDENTITY)

    @property
    def identity(self) -> bytes:
        """The public half, 32 bytes."""
        try:
            return public_of(self.identity_pem)
        except IdentityError as problem:
            raise UserError(f"{shown(self.path / _IDENTITY)}: {problem}") from None

    @property
    def certificate(self) -> bytes:
        """DER of the identity's own certificate."""
        return certificate_of(self.identity_pem)

    # --- TLS --------------------------------------------------------------------------------------------------------

    def leaf_file(self, use: Use, issued_from: datetime | None = None) -> Path:
        """TLS key and certificate in one file, made anew if they are missing, come to their end or were revoked."""
        path, now = self.leaf_path(use), datetime.now(UTC)
        if path.is_symlink() or path.exists():
            check_private(path)
            try:
                leaf = leaf_in(read_private(path))
                issued = issued_at(leaf, self.identity, use, now)
                revoked = issued_from is not None and issued < issued_from
                if not revoked and expiry_of(leaf) - now > RENEWED:
                    return path
            except IdentityError:
                pass  # of an earlier identity, expired or damaged: the identity can always issue another
        return self.renew_leaf(use, issued_from)

    def renew_leaf(self, use: Use, issued_from: datetime | None = None) -> Path:
        """A fresh TLS key and certificate. In one file, so that a crash leaves no key without its certificate.

        `issued_from`: earlier ones are revoked. It lies ahead of the coordinator's clock by as much as clocks may
        differ (`Coordinator.revoke`), so the certificate is dated there, and is valid so much earlier.
        """
        now = datetime.now(UTC)
        if issued_from is not None and issued_from - now > _FURTHEST:
            raise UserError(f"{shown(self.path)}: the coordinator refuses its TLS certificates until "
                            f"{fields.time_text(issued_from)}; is its clock, or this one, wrong?")  # fmt: skip
        leaf = issue(self.identity_pem, use, now if issued_from is None else max(now, issued_from))
        write_private(self.leaf_path(use), leaf.private_pem + leaf.certificate_pem)
        return self.leaf_path(use)

    def leaf_path(self, use: Use) -> Path:
        """Where TLS key and certificate are, if there are any."""
        return self.path / f"tls-{use}.pem"

    # --- a rotation of the identity ---------------------------------------------------------------------------------

    def next_identity(self) -> bytes:
        """The private PEM of the identity that a rotation is about to bring; the same until it has come."""
        path = self.path / _NEXT
        if not path.is_symlink() and not path.exists():
            write_new_private(path, new_identity().private_pem)
        return read_private(path)

    def upcoming(self) -> bytes | None:
        """The public half of that identity, if a rotation was begun."""
        path = self.path / _NEXT
        if not path.is_symlink() and not path.exists():
            return None
        try:
            return public_of(read_private(path))
        except IdentityError as problem:
            raise UserError(f"{shown(path)}: {problem}") from None

    def take_next(self) -> None:
        """The rotation is in the roster: from now on the new identity is this site's, and the old one is gone."""
        try:
            (self.path / _NEXT).replace(self.path / _IDENTITY)
        except FileNotFoundError:
            return  # another command of this site was quicker
        except OSError as problem:
            raise UserError(f"{shown(self.path / _IDENTITY)}: cannot be written ({problem.strerror})") from None
