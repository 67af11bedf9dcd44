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
        self._position = 0
        self._states = [self._read()]
        """What the files have held since the last message, the oldest first."""

    def watch(self, position: int) -> None:
        """Called before each message, with how many have passed."""
        if position != self._position:
            self._position, self._states = position, self._states[-1:]
        stamps = self._stamped()
        if stamps != self._stamps:
            self._stamps = stamps
            self._states.append(self._read())

    def possible(self, position: int) -> list[Content]:
        """What the server may have kept that was ended after so many messages; the likeliest first."""
        self.watch(position)
        return list(dict.fromkeys(reversed(self._states)))

    def restore(self, content: Content) -> None:
        """Go on from there."""
        for path, kept in zip(self._paths, content, strict=True):
            if kept is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(kept)
        self._stamps, self._position, self._states = self._stamped(), 0, [content]

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
