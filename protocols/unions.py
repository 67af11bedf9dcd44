"""What a client learns from aligning its names with those of the others, whichever protocol did it."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocols.errors import PeerMisbehaved


@dataclass(frozen=True, slots=True)
class Positions:
    """The size of the union and the places of the client's own names in it."""

    union_size: int
    own: npt.NDArray[np.int64] = field(repr=False)

    @classmethod
    def checked(cls, union_size: int, own: npt.NDArray[np.int64], names: int) -> "Positions":
        """Refuse an answer that would mix up rows: wrong length, out of range, or two names in one place."""
        in_range = own.size == 0 or (int(own.min()) >= 0 and int(own.max()) < union_size)
        if union_size < 0 or own.shape != (names,) or not in_range or np.unique(own).size != own.size:
            raise PeerMisbehaved("the server's positions do not fit this client's names")
        return cls(union_size, own)
