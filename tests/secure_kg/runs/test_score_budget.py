"""The record of opened means on a client's disk."""

import fcntl
import threading
from pathlib import Path

import pytest

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.scores.budget import BudgetSpent, Charge, Helpers
from secure_kg.foundation.errors import UserError
from secure_kg.runs.score_budget import MeansRecord, budget_of
from tests.support.score_batches import terms_of

ONE = Charge(b"\x01table", 2, PartyId(1))


def test_what_one_process_writes_another_reads(tmp_path: Path) -> None:
    assert MeansRecord(tmp_path / "new").spent(ONE.table) == 0
    assert MeansRecord(tmp_path / "new").add(ONE, 5)
    assert MeansRecord(tmp_path / "new").add(ONE, 5)
    assert not MeansRecord(tmp_path / "new").add(ONE, 5)
    assert MeansRecord(tmp_path / "new").spent(ONE.table) == 4
    assert MeansRecord(tmp_path / "new").spent(b"other") == 0
    path = tmp_path / "new" / "means.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().splitlines()[0] == '{"table": "017461626c65", "queries": 2, "asker": 1}'


def test_a_line_cut_short_is_left_alone_and_the_next_one_counts(tmp_path: Path) -> None:
    record = MeansRecord(tmp_path)
    record.add(ONE, None)
    path = tmp_path / "means.jsonl"
    path.write_bytes(path.read_bytes() + b'{"table": "0174')
    assert record.add(ONE, None)
    assert record.spent(ONE.table) == 4


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"table": "zz", "queries": 1, "asker": 1}',
        '{"table": "01", "queries": -5, "asker": 1}',
        '{"table": "01", "queries": true, "asker": 1}',
        '{"table": "01", "queries": 1, "asker": true}',
        '{"table": ' * 100_000 + "0" + "}" * 100_000,
    ],
    ids=["empty", "no-table", "negative", "true-queries", "true-asker", "nested"],
)
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "means.jsonl").write_text(line + "\n")
    with pytest.raises(UserError, match="not a record of opened means"):
        MeansRecord(tmp_path).spent(b"\x01")


def test_a_record_that_cannot_be_written_stops_the_client(tmp_path: Path) -> None:
    (tmp_path / "means.jsonl").mkdir()
    with pytest.raises(UserError, match="cannot be used"):
        MeansRecord(tmp_path).add(ONE, None)


def test_sessions_at_the_same_time_take_turns(tmp_path: Path) -> None:
    """While one session looks at the record, another waits: both would find room for the same queries."""
    record, added = MeansRecord(tmp_path), list[bool]()
    record.add(ONE, 5)
    waiting = threading.Thread(target=lambda: added.append(record.add(ONE, 5)))
    with (tmp_path / "means.jsonl").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting.start()
        waiting.join(0.2)
        assert added == []
        other.write(b'{"table": "017461626c65", "queries": 2, "asker": 2}\n')
        other.flush()
    waiting.join(20)
    assert added == [False]
    assert record.spent(ONE.table) == 4


def test_the_budget_of_a_client_outlives_its_session(tmp_path: Path) -> None:
    terms = terms_of(3, 5, queries=4)
    budget_of(tmp_path, 8, Helpers(4, 4)).charge(terms, b"a")
    with pytest.raises(BudgetSpent, match="beyond the budget of 4"):
        budget_of(tmp_path, 8, Helpers(4, 4)).charge(terms, b"b")
    budget_of(tmp_path, 8, Helpers(4, 4), allow_extraction=True).charge(terms, b"b")
    assert MeansRecord(tmp_path).spent(terms.table) == 8


def test_a_budget_that_gives_rows_away_is_refused(tmp_path: Path) -> None:
    budget_of(tmp_path, 8, limit=7)
    with pytest.raises(UserError, match="must lie below 8"):
        budget_of(tmp_path, 8, limit=8)


def test_the_first_set_of_clients_of_a_table_stays(tmp_path: Path) -> None:
    one, other = frozenset({PartyId(1), PartyId(2)}), frozenset({PartyId(1)})
    assert MeansRecord(tmp_path).cover(b"table", one) == one
    assert MeansRecord(tmp_path).add(ONE, 5)
    assert MeansRecord(tmp_path).cover(b"table", other) == one
    assert MeansRecord(tmp_path).cover(b"another", other) == other
    assert MeansRecord(tmp_path).spent(ONE.table) == 2
    assert (tmp_path / "means.jsonl").read_text().count("over") == 2


def test_two_sessions_do_not_announce_at_the_same_time(tmp_path: Path) -> None:
    """The second would not know over whom the first one opens."""
    first, second = MeansRecord(tmp_path), MeansRecord(tmp_path)
    assert first.covered(b"table") == frozenset()
    with pytest.raises(SumAbandoned, match="another session"):
        second.covered(b"table")
    assert first.cover(b"table", frozenset({PartyId(1)})) == {PartyId(1)}
    assert second.covered(b"table") == {PartyId(1)}
    second.release()  # what it announced comes to nothing
    assert first.covered(b"table") == {PartyId(1)}


def test_nothing_was_opened_over_nobody(tmp_path: Path) -> None:
    (tmp_path / "means.jsonl").write_text('{"table": "01", "over": []}\n')
    with pytest.raises(UserError, match="not a record"):
        MeansRecord(tmp_path).covered(b"\x01")
