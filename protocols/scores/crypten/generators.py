"""CrypTen's generators of randomness, replaced by AES-256 keystreams.

CrypTen draws shares and masks with `torch.randint` from Mersenne Twisters, of whose seeds 32 bits count: whoever sees a
few outputs has the rest. All its draws go through the name `torch` in one module, `crypten.common.rng`. While streams
are installed, that name stands for an object whose `randint` takes keystreams (`protocols.primitives.prg.Keystream`)
and refuses every other generator, so that no draw can fall back to a seed.

CrypTen's own draws leave out the largest ring element; these are uniform over all 2^64.

This module imports torch and CrypTen: processes that compute load it, the server's process does not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from protocols.primitives.prg import Keystream
from protocols.scores.crypten.crypten_import import load_crypten
from protocols.scores.crypten.rendezvous import RankKeys

_CPU: Final = torch.device("cpu")
_RING: Final = 1 << 64


def draw(stream: Keystream, size: Any) -> torch.Tensor:
    """Uniform ring elements of this shape, as CrypTen has them: signed numbers of 64 bits."""
    shape = torch.Size((size,) if isinstance(size, int) else size)
    return torch.from_numpy(stream.words(shape.numel()).view("<i8")).reshape(shape)


class StreamingTorch:
    """The module torch, but for `randint`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def randint(low: int, high: int, size: Any, **options: Any) -> torch.Tensor:
        """`low` and `high` as CrypTen gives them: those of the ring, or 0 and a power of two."""
        stream = options.get("generator")
        if not isinstance(stream, Keystream):
            raise TypeError("CrypTen draws from a generator that is no keystream")
        if torch.device(options.get("device") or _CPU) != _CPU or options.get("dtype") != torch.long:
            raise TypeError("keystreams give whole numbers of 64 bits on the CPU")
        if (low, high) == (-_RING // 2, (_RING - 1) // 2):
            return draw(stream, size)
        if low != 0 or high < 2 or high & (high - 1):
            raise ValueError(f"keystreams give elements of the ring or bits, not numbers from {low} to {high}")
        return draw(stream, size) & (high - 1)


@contextmanager
def installed(keys: RankKeys) -> Iterator[None]:
    """CrypTen with these keystreams in place of its generators."""
    crypten = load_crypten()
    rng, generators = crypten.common.rng, crypten.generators
    outer = rng.torch, {name: dict(devices) for name, devices in generators.items()}
    streams = {"prev": keys.previous, "next": keys.following, "local": keys.local}
    for name, devices in generators.items():
        devices.clear()  # also the one that all ranks share: nothing here draws from it
        if name in streams:
            devices[_CPU] = Keystream(streams[name])
    rng.torch = StreamingTorch()
    try:
        yield
    finally:
        rng.torch = outer[0]
        for name, devices in generators.items():
            devices.clear()
            devices.update(outer[1][name])
