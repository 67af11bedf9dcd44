"""Records that several threads read for the first time at once, as clients do that are threads and resume a run."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

READ_AT_ONCE = """
import sys, threading
import msgspec
from secure_kg.runs.records.record import Record

sys.setswitchinterval(1e-6)
for _ in range(1000):
    class Inner(msgspec.Struct):
        a: "dict[str, list[int]]"

    class New(Record, frozen=True):
        kind = "record"
        x: int
        y: "dict[str, list[float]]"
        z: "list[Inner] | None" = None

    globals().update(Inner=Inner, New=New)
    together, read = threading.Barrier(4), []

    def go():
        together.wait()
        read.append(New.from_json({"x": 1, "y": {"a": [1.0]}, "z": [{"a": {"k": [1]}}]}, "a file"))

    threads = [threading.Thread(target=go) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(read) == 4
"""


def test_a_record_is_read_by_several_threads_at_once() -> None:
    """In a process of its own: without the lock it ends by a segmentation fault."""
    done = subprocess.run([sys.executable, "-c", READ_AT_ONCE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
