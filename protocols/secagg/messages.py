"""The messages of the pairwise-masked sum, one type per step."""

from typing import Any

import numpy as np

from protocols import wire
from protocols.primitives.keys import PUBLIC_KEY_BYTES

MAX_PURPOSE = 64


@wire.message(0x0101)
class AdvertiseKeys(wire.Message, frozen=True):
    """Client to server, once per session: the public half of the key its masks come from."""

    mask_key: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.mask_key) == PUBLIC_KEY_BYTES, "public key of wrong length")


@wire.message(0x0102)
class KeyDirectory(wire.Message, frozen=True):
    """Server to client, once per session: every client's advertised key."""

    mask_keys: dict[int, bytes]

    def __post_init__(self) -> None:
        wire.require(
            all(len(key) == PUBLIC_KEY_BYTES for key in self.mask_keys.values()), "public key of wrong length"
        )


@wire.message(0x0103)
class MaskedInput(wire.Message, frozen=True):
    """Client to server, once per round and purpose: the input plus the pairwise masks, modulo 2^32 or 2^64."""

    purpose: str
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require_array(self.vector, "<u4", "<u8", ndim=1)
