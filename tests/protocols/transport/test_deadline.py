"""Deadlines end, and say how much is left until then."""

import time

import pytest

from protocols.foundation.deadline import Deadline


def test_a_deadline_in_the_past_has_expired_and_nothing_is_left() -> None:
    for seconds in (0.0, -5.0):
        deadline = Deadline.after(seconds)
        assert deadline.expired
        assert deadline.remaining() == 0.0


def test_a_deadline_is_a_point_on_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    deadline = Deadline.after(10.0)
    assert deadline == Deadline(110.0)
    now[0] = 104.0
    assert (deadline.remaining(), deadline.expired) == (6.0, False)
    now[0] = 110.0
    assert (deadline.remaining(), deadline.expired) == (0.0, True)
