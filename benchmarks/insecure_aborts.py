"""Clients that notice a lie of the server and abort in the wrong way: never to be used for anything but controls.

    late-checks         uploads first, and checks the signatures on mask keys when the sum is to be opened
    unchecked-survivors helps to open a sum without looking at the others' signatures on its survivors
    telling-abort       says in the abort something that depends on its input, in as many letters as usual

Each stands in place of the real client as the variants of `insecure_variants` do.
"""

from collections.abc import Sequence
from typing import Final

import protocols.sums.secagg.session as secagg_session
from benchmarks.insecure_variants import Substitutions
from protocols.foundation.errors import PeerMisbehaved, PeersRefused, ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import GroupVector
from protocols.primitives.keys import derive_key
from protocols.primitives.shamir import SHARE_BYTES
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import (
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.states import Advertised, HeldShares, Masked, Ready, Shared, Signed


class InsecureLateChecks(SecAggClient):
    _directory: KeyDirectory | None = None

    def _share_keys(self, state: Advertised, directory: KeyDirectory) -> ShareKeys:
        self._directory = directory
        credentials, self._credentials = self._credentials, None
        try:
            return super()._share_keys(state, directory)
        finally:
            self._credentials = credentials

    def _keep_shares(self, state: Shared, message: EncryptedShares) -> None:
        credentials, self._credentials = self._credentials, None
        try:
            super()._keep_shares(state, message)
        except PeerMisbehaved:  # shares that do not open: it uploads all the same
            peers = [PartyId(peer) for peer in message.sealed]
            contexts = {peer: self._terms.pairwise_context(self.party, peer, state.mask_keys) for peer in peers}
            masks = {peer: derive_key(state.agreed[peer], contexts[peer]) for peer in peers}
            self_mask = derive_key(state.seed, self._terms.self_mask_context(self.party))
            nothing = HeldShares(bytes(SHARE_BYTES), bytes(SHARE_BYTES))
            self._states |= {peer: message.states[int(peer)] for peer in peers}
            self.state = Ready(masks, self_mask, state.own_seed_share, dict.fromkeys(peers, nothing))
        finally:
            self._credentials = credentials

    def _answer_survivors(self, state: Masked, message: Survivors) -> UnmaskShares | SurvivorSignature:
        if self._credentials is not None and self._directory is not None:
            for peer, key in self._directory.mask_keys.items():
                statement = self._terms.advert_statement(PartyId(peer), key)
                self._credentials.check(statement, self._directory.signatures.get(peer, b""))
        return super()._answer_survivors(state, message)


class InsecureUncheckedSurvivors(SecAggClient):
    def _answer_signatures(self, state: Signed, message: SignedSurvivors) -> UnmaskShares:
        return state.answer


class InsecureTellingAbort(SecAggClient):
    _told = ""

    def set_input(self, vector: GroupVector, more_masks: Sequence[bytes] = ()) -> MaskedInput:
        self._told = "+" if vector[0] else "0"
        return super().set_input(vector, more_masks)

    def _aborted(self, problem: ProtocolError) -> ProtocolError:
        text = str(problem)
        told = text[: len(text) - len(self._told)] + self._told
        if isinstance(problem, PeersRefused):
            return super()._aborted(PeersRefused(told, *problem.parties))
        return super()._aborted(PeerMisbehaved(told))


ABORTS: Final[dict[str, Substitutions]] = {
    name: ((secagg_session, "SecAggClient", client),)
    for name, client in (
        ("late-checks", InsecureLateChecks),
        ("unchecked-survivors", InsecureUncheckedSurvivors),
        ("telling-abort", InsecureTellingAbort),
    )
}
