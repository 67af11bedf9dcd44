"""Pictures of uploads: files that can be read back, masks that hide, and the right caption for each side."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from secure_kg.report.audit_view import SIDE, Upload, byte_counts, masked, picture, view_section
from secure_kg.report.png import SIGNATURE, data_address, png
from tests.support.pages import Page


def read_png(content: bytes) -> npt.NDArray[np.uint8]:
    """Of grey pictures without filters; every checksum is verified."""
    assert content.startswith(SIGNATURE)
    chunks, at = [], len(SIGNATURE)
    while at < len(content):
        (size,) = struct.unpack_from(">I", content, at)
        kind, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", content, at + 8 + size) == (zlib.crc32(kind + body),)
        chunks.append((kind, body))
        at += 12 + size
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert rest == [8, 0, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[1][1]), dtype=np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (96, 96)])
def test_a_png_holds_what_was_put_in(shape: tuple[int, int]) -> None:
    points = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(read_png(png(points)), points)
    address = data_address(points)
    kind, content = address.split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(content, validate=True) == png(points)


def test_a_picture_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        png(np.zeros((0, 4), dtype=np.uint8))


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_a_picture_goes_from_the_smallest_to_the_largest_signed_value(kind: Any) -> None:
    words = np.array([0, 1, 2**30], dtype=np.int64).astype(kind)
    minus = np.array([-(2**30)], dtype=np.int64).astype(kind)
    shown = picture(np.concatenate((words, minus)))
    assert shown.shape == (2, 2)
    assert shown[1, 1] == 0
    assert shown[1, 0] == 255
    assert abs(int(shown[0, 0]) - 127) <= 1
    assert (picture(np.full(9, 7, dtype=kind)) == 127).all()
    assert picture(np.zeros(SIDE * SIDE + 500, dtype=kind)).shape == (SIDE, SIDE)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_a_fresh_mask_makes_bytes_even(kind: Any) -> None:
    words = np.zeros(SIDE * SIDE, dtype=kind)
    assert byte_counts(words)[0] == words.nbytes
    counts = byte_counts(masked(words))
    assert sum(counts) == words.nbytes
    assert max(counts) < 1.5 * words.nbytes / len(counts)  # 576 or more expected in each: 12 deviations away
    assert masked(words).dtype == kind
    assert not np.array_equal(masked(words), masked(words))


def images(
    upload: Upload | None, clear_side: npt.NDArray[Any] | None = None
) -> tuple[list[npt.NDArray[np.uint8]], str]:
    page = Page(f"<main><style></style>{''.join(view_section(upload, clear_side))}</main>")
    found = [read_png(base64.b64decode(image["src"].split(",")[1])) for image in page.all("img")]
    return found, page.text


def test_what_the_server_saw_stands_beside_its_twin() -> None:
    words, rows = np.arange(100, dtype=np.uint32), np.arange(100, dtype=np.uint32) ** 2
    (seen, twin), text = images(Upload(words, 2, 3, "ClearInput"))
    np.testing.assert_array_equal(seen, picture(words))
    assert not np.array_equal(twin, seen)
    assert "What the server received of client 2 in round 3: the client's rows" in text
    assert "would have received under --aggregation secagg" in text

    (clear, seen), text = images(Upload(words, 2, 3, "MaskedInput"), rows)
    np.testing.assert_array_equal(clear, picture(rows))
    np.testing.assert_array_equal(seen, picture(words))
    assert "The server never had it" in text

    (seen,), text = images(Upload(words, 2, 3, "MaskedInput"))
    np.testing.assert_array_equal(seen, picture(words))
    assert "--truth" in text

    nothing, text = images(None)
    assert nothing == []
    assert images(Upload(words[:0], 2, 3, "MaskedInput"))[0] == []
    assert "no upload to show" in text
