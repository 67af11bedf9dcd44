"""Outputs of the Mersenne Twister for very many seeds: the inner loop of a search for a seed.

The generator (Matsumoto and Nishimura 1998, MT19937) fills 624 words from a seed of 32 bits, one after the other, and
output j < 227 depends on words j, j + 1 and j + 397 alone. So a seed is tested after j + 398 multiplications, and no
state is kept: seeds are taken side by side, one in each lane of the processor.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

LAST_DIRECT: Final = 226
"""The last output that needs no word of the twisted state."""
_LANES: Final = 64


@compiled
def seeds_with_output(start: int, stop: int, place: int, value: int, keep: int, found: npt.NDArray[np.uint32]) -> int:
    """Seeds s in start <= s < stop whose output number `place`, under the bit mask `keep`, is `value`.

    They are written to `found` [room], as many as fit; their number is returned.
    """
    lanes = np.empty(_LANES, dtype=np.uint32)
    first, second = np.empty_like(lanes), np.empty_like(lanes)
    number = 0
    for base in range(start, stop, _LANES):
        for lane in range(_LANES):
            lanes[lane] = np.uint32(base + lane)
        for word in range(1, place + 398):
            if word - 1 == place:
                first[:] = lanes
            if word - 2 == place:
                second[:] = lanes
            add = np.uint32(word)
            for lane in range(_LANES):
                state = lanes[lane]
                lanes[lane] = np.uint32(1812433253) * (state ^ (state >> np.uint32(30))) + add
        for lane in range(_LANES):
            mixed = (first[lane] & np.uint32(0x80000000)) | (second[lane] & np.uint32(0x7FFFFFFF))
            twist = np.uint32(0x9908B0DF) if mixed & np.uint32(1) else np.uint32(0)
            word_out = lanes[lane] ^ (mixed >> np.uint32(1)) ^ twist
            word_out ^= word_out >> np.uint32(11)
            word_out ^= (word_out << np.uint32(7)) & np.uint32(0x9D2C5680)
            word_out ^= (word_out << np.uint32(15)) & np.uint32(0xEFC60000)
            word_out ^= word_out >> np.uint32(18)
            if (word_out & np.uint32(keep)) == np.uint32(value) and base + lane < stop:
                if number < len(found):
                    found[number] = np.uint32(base + lane)
                number += 1
    return number
