"""A grey picture as a PNG file, and as an address that a page can carry inside itself."""

import base64
import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

Grey = npt.NDArray[np.uint8]
"""One byte per point, [height, width]; 0 is black."""
SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


def png(picture: Grey) -> bytes:
    height, width = picture.shape
    if not picture.size:
        raise ValueError("a picture needs at least one point")
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits of grey, no interlacing
    unfiltered = np.zeros((height, 1), dtype=np.uint8)  # before each line: how it is filtered
    lines = np.hstack((unfiltered, picture)).tobytes()
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")


def data_address(picture: Grey) -> str:
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode("ascii")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
