"""Masks from seeds of few bits: found by trying them all.

Attacker: the server, alone.
Has:      one masked upload x + mask mod 2^k under one mask, and places where x is known to be zero, such as rows that
          the client does not hold. There the upload is the mask itself.
Breaks:   generators that fold a seed of 256 bits to 32 and feed the Mersenne Twister with it, as aggregation code in
          wide use does: `numpy.random.RandomState(seed).randint(0, 2^k, n)`. However long the agreed key is, the mask
          has 2^32 values, and a seed is tested in some 100 ns.
Gains:    the seed, and with it the whole upload. Two masks on one upload (self mask and one pair) need one of them
          opened, which the protocol does for every survivor's self mask anyway.
Here:     masks are AES-256-CTR keystreams of 256-bit keys; `bits_in_use` looks at seeds the server was given in the
          unmasking step, so that keys that are padded or folded short ones show.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.result import AttackResult
from secure_kg.foundation.errors import UserError
from secure_kg.kernels.mersenne import LAST_DIRECT, seeds_with_output

SEED_BITS: Final = 32
"""What the Mersenne Twister's usual seeding takes."""
_ROOM: Final = 1 << 16
_STEP: Final = 1 << 20
_CONFIDENCE: Final = 16
"""So many seeds more than a bound needs, before it is believed: an error in 2^16."""

Uploaded = npt.NDArray[np.uint64]
"""One masked upload [entries], entries below 2^k."""


def weak_mask(seed: int, entries: int, modulus_bits: int) -> Uploaded:
    """The mask [entries] of such a generator; exists here to be attacked."""
    draws = np.random.RandomState(seed).randint(0, 1 << modulus_bits, size=entries, dtype=np.int64)
    return draws.astype(np.uint64)


def unmasked(upload: Uploaded, seed: int, modulus_bits: int) -> Uploaded:
    """The upload without the mask of that seed."""
    mask = weak_mask(seed, len(upload), modulus_bits)
    plain: Uploaded = (upload - mask) & np.uint64((1 << modulus_bits) - 1)
    return plain


@dataclass(frozen=True, slots=True)
class SeedSearch:
    """What a search came to."""

    seed: int | None
    """None: no seed of so many bits explains the zeros."""
    tried: int
    seconds: float

    @property
    def seconds_for_all(self) -> float:
        """What trying all 2^32 seeds would take at this speed, on one core."""
        return self.seconds / max(self.tried, 1) * (1 << SEED_BITS)


def find_seed(upload: Uploaded, zeros: npt.NDArray[np.int64], modulus_bits: int, bits: int = 28) -> SeedSearch:
    """Try all seeds below 2^bits. `zeros` [m]: where the input is known to be zero, one of them before entry 227.

    A seed is kept if the mask is right at the first zero, and found if it is right at all of them.
    """
    if not 1 <= modulus_bits <= 32 or not 1 <= bits <= SEED_BITS:
        raise UserError("masks and seeds of 1 to 32 bits can be searched")
    places = np.sort(zeros)
    if not len(places) or places[0] > LAST_DIRECT:
        raise UserError(f"the search needs an entry known to be zero among the first {LAST_DIRECT + 1}")
    place, keep = int(places[0]), (1 << modulus_bits) - 1
    found = np.empty(_ROOM, dtype=np.uint32)
    seeds_with_output(0, 1, place, 0, 0, found)  # compiled before time is taken
    started = time.perf_counter()
    for start in range(0, 1 << bits, _STEP):
        stop = min(start + _STEP, 1 << bits)
        number = seeds_with_output(start, stop, place, int(upload[place]), keep, found)
        if number > _ROOM:
            raise UserError("too many seeds explain one entry: the modulus is too small for this search")
        for seed in found[:number].tolist():
            if np.array_equal(weak_mask(seed, int(places[-1]) + 1, modulus_bits)[places], upload[places]):
                return SeedSearch(seed, stop, time.perf_counter() - started)
    return SeedSearch(None, 1 << bits, time.perf_counter() - started)


def seed_search_result(
    search: SeedSearch, upload: Uploaded, truth: Uploaded, modulus_bits: int, client: int, bits: int = 28
) -> AttackResult:
    """`truth`: the input under the mask. Score `opened`: the share of its entries that were found."""
    guess = unmasked(upload, search.seed, modulus_bits) if search.seed is not None else upload
    opened, blind = float(np.mean(guess == truth)), float(np.mean(truth == 0))
    took = (
        f"{search.tried:,} seeds took {search.seconds:.1f} s, all of 32 bits would take {search.seconds_for_all:.0f} s"
    )
    return AttackResult(
        "weak-seed",
        "The mask's seed found by trying",
        f"client {client}",
        f"one masked upload and some entries known to be zero; seeds of up to {bits} bits were tried",
        {"opened": opened},
        {"opened": blind},  # saying zero everywhere
        search.seed is not None and opened > blind,
        f"The seed was found and the upload is open ({took})."
        if search.seed is not None
        else f"No seed of up to {bits} bits explains the upload ({took}).",
        {"entries": len(truth)},
    )


@dataclass(frozen=True, slots=True)
class SeedBits:
    """How much of their length seeds make use of."""

    seeds: int
    length: int
    """Bits of one seed."""
    varying: int
    """Bits that are not the same in all seeds."""
    rank: int
    """Dimension over GF(2) of the differences of the seeds: words repeated or combined by XOR do not raise it."""
    repeated: int
    """How many seeds have occurred before."""
    constant: tuple[int, ...] = field(repr=False)
    """Which bits are the same in all seeds; bit 0 is the highest of the first byte."""

    @property
    def entropy_bound(self) -> int:
        """At most so many bits of entropy, as far as so few seeds tell; `length` if they show nothing unusual."""
        bound = self.length
        if (
            self.seeds > _CONFIDENCE + self.length.bit_length()
        ):  # that one of the bits is constant by chance is unlikely
            bound = min(bound, self.varying)
        if self.seeds - 1 >= self.rank + _CONFIDENCE:
            bound = min(bound, self.rank)
        if self.repeated:  # the birthday bound: repetitions among s seeds are expected below 2 log2 s bits
            bound = min(bound, max(0, 2 * (self.seeds.bit_length() + 1)))
        return bound

    @property
    def suspicious(self) -> bool:
        return self.entropy_bound < self.length


def bits_in_use(seeds: Sequence[bytes]) -> SeedBits:
    """`seeds`: of equal length, such as the 32-byte seeds of self masks that the server opened in a run."""
    if not seeds:
        return SeedBits(0, 0, 0, 0, 0, ())
    length = 8 * len(seeds[0])
    if any(8 * len(seed) != length for seed in seeds):
        raise UserError("seeds of different lengths cannot be compared")
    bits = np.unpackbits(np.frombuffer(b"".join(seeds), dtype=np.uint8).reshape(len(seeds), -1), axis=1)
    differences = bits[1:] ^ bits[0]
    changing = differences.any(axis=0)
    repeated = sum(number - 1 for number in Counter(seeds).values())
    constant = tuple(int(bit) for bit in np.flatnonzero(~changing))
    return SeedBits(len(seeds), length, int(changing.sum()), _rank(differences), repeated, constant)


def _rank(rows: npt.NDArray[np.uint8]) -> int:
    """The rank over GF(2) of bits [n, m], in 0 and 1."""
    rest, rank = rows.astype(np.bool_), 0
    for column in range(rest.shape[1]):
        having = np.flatnonzero(rest[rank:, column]) + rank
        if not len(having):
            continue
        rest[[rank, having[0]]] = rest[[having[0], rank]]
        below = np.flatnonzero(rest[rank + 1 :, column]) + rank + 1
        rest[below] ^= rest[rank]
        rank += 1
        if rank == len(rest):
            break
    return rank
