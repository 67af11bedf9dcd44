"""The server's view of agreeing on a group key (`protocols.session.group_key`), written from who was there.

Ciphertexts are zeros under fresh random keys (the channels' keys are random to the server: computational
Diffie-Hellman, HKDF-SHA256 as a random oracle; AES-256-GCM hides what it encrypts). The commitment is 32 random bytes:
it is a hash of 256 random bits that the server never sees, and SHA-256 is a random oracle. All later keys that clients
derive from the group key are independent of it for the same reason.
"""

import secrets

from protocols.foundation.identifiers import SETUP
from protocols.ideal.masked_sum import SimulatedSums, sealed_zeros
from protocols.primitives.prg import KEY_BYTES
from protocols.session.group_key import STEP, DrawGroupKey, SealedGroupKey, SealedGroupKeys
from protocols.session.messages import COMMITMENT_BYTES


def simulate_group_key(sums: SimulatedSums) -> bytes:
    """After the set-up: the first of those present draws it. Returns the commitment, which the server knows."""
    first, *others = sorted(sums.present)
    commitment = secrets.token_bytes(COMMITMENT_BYTES)
    sealed = {int(peer): sealed_zeros(KEY_BYTES) for peer in sums.clients if peer != first}
    sums.sent(first, DrawGroupKey(), SETUP, STEP)
    sums.received(first, SealedGroupKeys(commitment, sealed), SETUP, STEP)
    for party in others:
        sums.sent(party, SealedGroupKey(int(first), commitment, sealed[int(party)]), SETUP, STEP)
    return commitment
