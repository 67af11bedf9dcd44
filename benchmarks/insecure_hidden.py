"""Hidden queries broken on purpose, to show that a comparison of views notices: for nothing else.

As `insecure_scores`. The first two are broken in what the server sees, the third in what scorers see, the last in what
the asker sees.

    unsealed-tables     masked tables are not encrypted on their way to the asker: the server knows the masks
    unsealed-queries    neither are masked queries on their way to scorers
    reused-query-masks  the mask of the queries is the same in every batch of a session
    unmasked-tables     tables have no mask
"""

import secrets
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from protocols.foundation.identifiers import PartyId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.scores.topk import hidden
from protocols.scores.topk.dealing import Seed
from protocols.scores.topk.hidden import HiddenBatch
from protocols.scores.topk.words import Words
from protocols.session.channels import ClientChannels

NONCE_BYTES: Final = 12
Substitution = tuple[Any, str, Callable[..., Any]]

_seal_for, _open_from = ClientChannels.seal_for, ClientChannels.open_from


def unsealed(what: str) -> tuple[Substitution, ...]:
    """Channels in clear for uses that begin with these words: of the right length, with noise for nonce and tag."""

    def insecure_seal_for(self: ClientChannels, peer: PartyId, use: str, secret: bytes) -> bytes:
        if not use.startswith(what):
            return _seal_for(self, peer, use, secret)
        return secrets.token_bytes(NONCE_BYTES) + secret + secrets.token_bytes(OVERHEAD_BYTES - NONCE_BYTES)

    def insecure_open_from(self: ClientChannels, peer: PartyId, use: str, sealed: bytes) -> bytes:
        if not use.startswith(what):
            return _open_from(self, peer, use, sealed)
        return sealed[NONCE_BYTES : NONCE_BYTES - OVERHEAD_BYTES]

    return (ClientChannels, "seal_for", insecure_seal_for), (ClientChannels, "open_from", insecure_open_from)


def insecure_query_mask(seed: Seed, batch: HiddenBatch) -> Words:
    shape = (batch.rows, batch.shape.dimensions)
    return seed.words(0, "queries", shape[0] * shape[1]).reshape(shape)


def insecure_table_mask(seed: Seed, start: int, stop: int, batch: HiddenBatch) -> Words:
    return np.zeros((stop - start, batch.shape.dimensions), dtype=np.uint64)


HIDDEN_VARIANTS: Final[dict[str, tuple[Substitution, ...]]] = {
    "unsealed-tables": unsealed("masked table/"),
    "unsealed-queries": unsealed("ask scores/"),
    "reused-query-masks": ((hidden, "query_mask", insecure_query_mask),),
    "unmasked-tables": ((hidden, "table_mask", insecure_table_mask),),
}
