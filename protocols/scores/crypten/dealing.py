"""The server's hold on its dealer (`protocols.scores.crypten.dealer`), a process of its own."""

import json
import os
import select
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.spent import Spent
from protocols.scores.crypten.rendezvous import STALL

_MODULE: Final = "protocols.scores.crypten.dealer"
_ROOT: Final = Path(__file__).resolve().parents[3]


class Dealing:
    """At most one dealer at a time. It is kept from one group to the next, unless a group breaks."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._end: weakref.finalize[..., Any] | None = None

    def start(self) -> None:
        """Have a dealer ready; it needs some seconds before it can take its first group."""
        if self._process is not None and self._process.poll() is None:
            return
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        # Its keys come through a pipe: arguments and environment can be read by others of this machine.
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        self._end = weakref.finalize(self, _end, self._process)

    def deal(self, host: str, port: int, keys: Sequence[bytes]) -> None:
        """Send the dealer to a group. `SumAbandoned` if there is none any more."""
        self.start()
        job = {"host": host, "port": port, "stall": STALL, "keys": [key.hex() for key in keys]}
        try:
            jobs, _ = self._pipes()
            jobs.write(json.dumps(job) + "\n")
            jobs.flush()
        except OSError:
            raise SumAbandoned("the dealer of the CrypTen group has ended") from None

    def done(self, seconds: float) -> Spent:
        """What the dealer took for a group that has ended. `SumAbandoned` if it does not say so in time."""
        _, words = self._pipes()
        ready, _, _ = select.select([words], [], [], seconds)
        line = words.readline() if ready else ""
        if not line:
            raise SumAbandoned("the dealer of the CrypTen group has not come to its end")
        took = json.loads(line)
        return Spent(took["seconds"], took["cpu_seconds"])

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        """The dealer's input, and its output."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("start() comes first")
        return process.stdin, process.stdout

    def stop(self) -> None:
        """End the dealer, and with it the group that it is in: ranks that ask it get an error at once."""
        if self._end is not None:
            self._end()
        self._process = None


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was written last has not been read
                pipe.close()
