"""The server's view: one upload as a grey picture, beside the same upload with its masks, or without them."""

import math
import secrets
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from secure_kg.report.charts import histogram
from secure_kg.report.html import Html, figure, join, quiet, tag
from secure_kg.report.png import Grey, data_address

Words = npt.NDArray[np.unsignedinteger[Any]]
"""Elements of a ring, uint32 or uint64."""
SIDE: Final = 96
_BINS: Final = 64
_CAREFUL: Final = "It shows values of a client: handle this page as you would handle them."


@dataclass(frozen=True, slots=True)
class Upload:
    """The rows of one client as the server received them: the first entries."""

    words: Words
    client: int
    round: int
    kind: str
    """The type of the message: `ClearInput` or `MaskedInput`."""

    @property
    def in_clear(self) -> bool:
        return self.kind == "ClearInput"


def view_section(upload: Upload | None, clear_side: Words | None = None) -> list[Html]:
    """`clear_side`: what the client encoded before it added its masks, where an auditor was given it."""
    if upload is None or not upload.words.size:
        return [quiet("No rows were sent in this run, so there is no upload to show.")]
    whose = f"of client {upload.client} in round {upload.round}"
    told = (
        f"The first entries of the rows {whose}, one point each; black is the smallest value in a picture and white "
        "the largest. Below: how often each byte occurs in them."
    )
    if upload.in_clear:
        pictures = [
            _side(upload.words, f"What the server received {whose}: the client's rows. {_CAREFUL}"),
            _side(
                masked(upload.words), "What it would have received under --aggregation secagg: the same under a mask."
            ),
        ]
    elif clear_side is not None and clear_side.size:
        pictures = [
            _side(clear_side, f"What the client encoded, from its own folder. The server never had it. {_CAREFUL}"),
            _side(upload.words, f"What the server received {whose}: the same under its masks."),
        ]
    else:
        alone = f"What the server received {whose}: rows under masks. With --truth the rows themselves stand beside it."
        pictures = [_side(upload.words, alone)]
    return [tag("p", told), tag("div", *pictures, class_="pictures")]


def masked(words: Words) -> Words:
    """The same under a fresh uniform mask."""
    mask = np.frombuffer(secrets.token_bytes(words.nbytes), dtype=words.dtype)
    total: Words = words + mask  # modulo the ring's size
    return total


def picture(words: Words) -> Grey:
    """The first entries as signed numbers, in a square, from black to white."""
    side = min(SIDE, math.isqrt(words.size))
    signed = words[: side * side].view(np.dtype(f"i{words.dtype.itemsize}")).astype(np.float64)
    low, span = signed.min(), np.ptp(signed)
    scaled = (signed - low) / span * 255 if span else np.full(len(signed), 127.0)
    grey: Grey = np.rint(scaled).astype(np.uint8).reshape(side, side)
    return grey


def byte_counts(words: Words) -> list[int]:
    """How often bytes of 0 to 3, 4 to 7, ... occur in the picture's entries."""
    side = min(SIDE, math.isqrt(words.size))
    content = np.frombuffer(words[: side * side].tobytes(), dtype=np.uint8)
    return [int(count) for count in np.bincount(content // (256 // _BINS), minlength=_BINS)]


def _side(words: Words, caption: str) -> Html:
    counts = byte_counts(words)
    most = max(counts) / max(sum(counts), 1)
    bars = histogram(
        counts, f"how often bytes occur; the most frequent sixty-fourth has {most:.1%}", "byte 0", "byte 255"
    )
    shape = "x".join(map(str, picture(words).shape))
    image = tag(
        "img", src=data_address(picture(words)), alt=f"{caption} {shape} points of grey.", width="96", height="96"
    )
    return figure(join((image, bars)), caption)
