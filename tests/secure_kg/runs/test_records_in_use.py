"""A client's record of opened sums serves one session at a time."""

from pathlib import Path

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.runs.client_folder import alone


def test_a_second_session_is_refused_in_one_line_and_comes_after_the_first(tmp_path: Path) -> None:
    with alone(tmp_path / "client-1.record"):
        with pytest.raises(UserError, match="takes part in another session"), alone(tmp_path / "client-1.record"):
            pass
        with alone(tmp_path / "client-2.record"):
            pass
    with alone(tmp_path / "client-1.record"):
        pass
