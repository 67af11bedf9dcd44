"""What a sum costs in bytes beside the vector, as docs/secagg.md says it."""

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import RoundId, new_session
from protocols.primitives.shamir import SHARE_BYTES
from protocols.sums.secagg.messages import (
    PEERS_BYTES,
    SEALED_SHARES_BYTES,
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    UnmaskShares,
)


@pytest.mark.parametrize("neighbours", [1, 4, 9, 74, 140, 999])
@pytest.mark.parametrize("dropped", [0, 1])
def test_bytes_up_beside_the_vector(neighbours: int, dropped: int) -> None:
    peers = range(1, neighbours + 1)
    gone, here = list(peers)[:dropped], list(peers)[dropped:]
    messages = [
        AdvertiseKeys("rows", bytes(32), b"", b""),
        ShareKeys("rows", dict.fromkeys(peers, bytes(SEALED_SHARES_BYTES)), bytes(32), b"", b""),
        UnmaskShares(
            "rows",
            dict.fromkeys(gone, bytes(SHARE_BYTES)),
            dict.fromkeys([*here, neighbours + 1], bytes(SHARE_BYTES)),
        ),
    ]
    vector = MaskedInput("rows", np.zeros(1000, dtype="<u4"), bytes(PEERS_BYTES))
    size = sum(len(wire.encode(message, new_session(), RoundId(1))) for message in (*messages, vector)) - 4000
    assert 150 * neighbours < size < 160 * neighbours + 360
