"""What a server keeps of one session for the next, at the moments at which it may have been ended.

Between two messages a server may write a file, and it may be killed before or after that: the record is the same. So a
session after it may go on from either.
"""

from pathlib import Path
from typing import Final

_FILES: Final = ("checkpoint.json", "server/alignment.json", "server/tested.json")
"""What decides how the next session begins. Parts of checkpoints stay: each party keeps its last two."""

Content = tuple[bytes | None, ...]


class Kept:
    """The files of a run's folder as the server's program writes them."""

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / name for name in _FILES]
        self._stamps = self._stamped()
        self._now = self._before = self._read()
        self._changed_at = -1

    def watch(self, position: int) -> None:
        """Called before each message, with how many have passed."""
        stamps = self._stamped()
        if stamps == self._stamps:
            return
        self._before, self._now = (self._now if position != self._changed_at else self._before), self._read()
        self._stamps, self._changed_at = stamps, position

    def possible(self, position: int) -> list[Content]:
        """What the server may have kept that was ended after so many messages; the likeliest first."""
        self.watch(position)
        return [self._now, self._before] if self._changed_at == position and self._before != self._now else [self._now]

    def restore(self, content: Content) -> None:
        """Go on from there."""
        for path, kept in zip(self._paths, content, strict=True):
            if kept is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(kept)
        self._stamps, self._changed_at = self._stamped(), -1
        self._now = self._before = content

    def _read(self) -> Content:
        return tuple(path.read_bytes() if path.exists() else None for path in self._paths)

    def _stamped(self) -> tuple[tuple[int, int] | None, ...]:
        """Files are written anew and renamed: another file is another inode, or at least another time."""
        stamps = list[tuple[int, int] | None]()
        for path in self._paths:
            try:
                stat = path.stat()
                stamps.append((stat.st_ino, stat.st_mtime_ns))
            except FileNotFoundError:
                stamps.append(None)
        return tuple(stamps)
