"""Files as streams of bytes: plain, gzip (`.gz`) or zstd (`.zst`), without a byte-order mark, never whole in memory.

A packed file may unpack to 250 times its size, and to 64 MiB in any case: graphs pack 5 to 50 times smaller, bombs a
thousand times and more. What exceeds it is refused where it does, so no more than a chunk of it was ever in memory.
"""

import codecs
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from secure_kg.data.readers.interface import refuse
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.progress import reading
from secure_kg.foundation.visible import shown

PACKED: Final = (".gz", ".zst")
RATIO: Final = 250
FREE: Final = 64 << 20
LONGEST_LINE: Final = 16 << 20
_PIECE: Final = 1 << 18
_TOO_EARLY: Final = "the compressed file ends here, too early"


class ByteStream:
    """The unpacked bytes of a file. `read` as of a file in binary mode."""

    def __init__(self, path: Path, file: BinaryIO, size: int, progress: Callable[[int], None]) -> None:
        self.path, self.lines, self._file, self._progress = path, 0, file, progress
        """`lines`: how many line ends were read so far."""
        self._pieces = self._unpacked(file, size)
        self._rest = b""
        self._begun = False

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, at least one unless the file has ended; all if `size` is negative."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        if not self._begun:
            self._begun = True
            self._rest = self._first()
        while not self._rest:
            if (piece := next(self._pieces, None)) is None:
                return b""
            self._rest = piece
            self._progress(self._file.tell())
        data, self._rest = self._rest[:size], self._rest[size:]
        self.lines += data.count(b"\n")
        return data

    def _first(self) -> bytes:
        first = b""
        while len(first) < len(codecs.BOM_UTF8) and (piece := next(self._pieces, None)) is not None:
            first += piece
        return first.removeprefix(codecs.BOM_UTF8)

    def _unpacked(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        name, total = self.path.name.lower(), 0
        pieces = self._gunzip(file) if name.endswith(".gz") else self._zstd(file) if name.endswith(".zst") else None
        try:
            if pieces is None:
                yield from iter(lambda: file.read(_PIECE), b"")
                return
            for piece in pieces:
                total += len(piece)
                if total > max(FREE, RATIO * size):
                    refuse(self.path, f"unpacks to more than {RATIO} times its size; unpack it yourself if it is sound")
                yield piece
        except OSError as error:
            raise DataError(f"{shown(self.path)}: cannot be read ({error.strerror or 'damaged'})") from None

    def _gunzip(self, file: BinaryIO) -> Iterator[bytes]:
        """Every member of a gzip file."""
        waiting, member = b"", zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: header and checksum are required
        while True:
            waiting = waiting or file.read(_PIECE)
            if not waiting:
                self._end_too_early()
            try:
                piece = member.decompress(waiting, _PIECE)
            except zlib.error:
                refuse(self.path, "not a gzip file, or a damaged one")
            waiting = member.unconsumed_tail
            yield piece
            if member.eof:
                waiting = member.unused_data.lstrip(b"\0")  # tape blocks are padded with zeros
                while not waiting and (more := file.read(_PIECE)):
                    waiting = more.lstrip(b"\0")
                if not waiting:
                    return
                member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def _zstd(self, file: BinaryIO) -> Iterator[bytes]:
        pyarrow = arrow(self.path)
        if os.fstat(file.fileno()).st_size == 0:
            self._end_too_early()
        try:
            unpacked = pyarrow.CompressedInputStream(file, "zstd")
            yield from iter(lambda: unpacked.read(_PIECE), b"")
        except OSError as error:
            if "truncated" in str(error).lower():
                self._end_too_early()
            refuse(self.path, "not a zstd file, or a damaged one")

    def _end_too_early(self) -> None:
        refuse(self.path, _TOO_EARLY, self.lines + self._rest.count(b"\n") + 1)


@contextmanager
def open_stream(path: Path) -> Iterator[ByteStream]:
    """A regular file, unpacked if its name says that it is packed. Raises DataError in one line."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            refuse(path, "is a folder, not a file")
        if not stat.S_ISREG(mode):  # a pipe, or a device, might never end
            refuse(path, "cannot be read (it is no regular file)")
        with open(path, "rb") as file, reading(path) as progress:
            yield ByteStream(path, file, os.fstat(file.fileno()).st_size, progress)
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be read ({error.strerror or 'damaged'})") from None
    except ValueError:  # a zero byte in the name
        raise DataError(f"{shown(path)}: cannot be read (no name of a file)") from None


def text_chunks(stream: ByteStream) -> Iterator[tuple[int, str]]:
    """Whole lines of UTF-8 text, a megabyte or so at a time, each with the number of its first line."""
    line, rest = 1, b""
    while piece := stream.read(1 << 20):
        cut = piece.rfind(b"\n") + 1
        if cut == 0:
            rest += piece
            if len(rest) > LONGEST_LINE:
                refuse(stream.path, f"a line of more than {LONGEST_LINE >> 20} MiB", line)
            continue
        chunk, rest = rest + piece[:cut], piece[cut:]
        yield line, _decoded(stream.path, chunk, line)
        line += chunk.count(b"\n")
    if rest:
        yield line, _decoded(stream.path, rest, line)


def _decoded(path: Path, data: bytes, line: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(path, "not valid UTF-8", line + data.count(b"\n", 0, error.start))


def arrow(path: Path) -> Any:
    """The package pyarrow, which an extra installs."""
    try:
        import pyarrow
    except ImportError:
        refuse(path, "needs the package pyarrow: pip install 'secure-kg[parquet]'")
    return pyarrow
