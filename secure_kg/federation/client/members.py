"""Who takes part, by identity: what a client's record of openings calls the others, and when it refuses to begin.

A number says which place somebody has, and a place can go to another organisation. Then sums of the same seed, over the
same numbers, differ by what the old one and the new one have added. Where clients have identities, the record knows who
it was (`protocols.sums.secagg.openings`), and a client takes part in no other run under a seed that it has trained with
beside somebody who is not there any more: sum after sum would be refused, and the run come to nothing.

With `others_allowed` a person at the client has said that the difference may be shown. Openings of other runs then bind
by number, as they do where nobody has an identity: still over no fewer clients than before.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from protocols.foundation.identifiers import PartyId
from protocols.session.credentials import Credentials
from protocols.session.site_keys import fingerprint
from protocols.sums.secagg.openings import Opening
from secure_kg.federation.client.lineage import seed_in
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command


@dataclass(frozen=True, slots=True)
class Members:
    """`identities`: fingerprints of all clients, by number; empty where only numbers are known."""

    identities: Mapping[PartyId, str] = field(default_factory=dict)
    others_allowed: bool = False

    @classmethod
    def of(cls, public: Mapping[PartyId, bytes], *, others_allowed: bool = False) -> "Members":
        """By their public keys."""
        return cls({party: fingerprint(key) for party, key in public.items()}, others_allowed)

    def or_of(self, credentials: Credentials | None) -> "Members":
        """The pinned identities of credentials, where nothing else is known."""
        return self if self.identities or credentials is None else Members.of(credentials.directory)

    def bound_by(self, known: Collection[Opening], run: str, seed: int) -> list[Opening]:
        """What was opened so far, as this client goes by it in `run`. `UserError` if it must not begin."""
        if not self.identities:
            return list(known)
        here, bound, gone = frozenset(self.identities.values()), list[Opening](), set[str]()
        for one in known:
            strangers = frozenset(one.identities.values()) - here if one.run != run else frozenset[str]()
            if seed_in(one.lineage) == str(seed):
                gone |= strangers
            bound.append(replace(one, identities={}) if strangers else one)
        if gone and not self.others_allowed:
            raise UserError(
                f"this site has trained under seed {seed} before beside {' and '.join(sorted(gone))}, in whose place "
                "is another one now, or nobody: the sums of both runs would show the difference. Found a new "
                f"federation with another --seed; {command('launch.join')} --other-members takes part all the same"
            )
        return bound


NUMBERS_ALONE: Final = Members()
"""Of clients without identities."""
