"""Rows of a campaign: what the file survives, what is paired, and what is said of it."""

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest

from benchmarks.campaigns.queue import OWN_QUEUE, Entry, only, read_queue
from benchmarks.campaigns.rendering import campaign_text, keys_of, orphans, rendered, report_of, require_pairable
from benchmarks.campaigns.row_file import OWN_ROWS, RowFile, appending, read_rows
from benchmarks.campaigns.rows import PartRow, Row, key_of
from benchmarks.campaigns.verdicts import verdicts
from benchmarks.reproduction.provenance import RESULTS_VERSION
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.record import Figures

QUEUE = """
[[entry]]
name = "tiny"
asks = "Does FedR beat Local?"
table = "fedr-table2"
datasets = ["ddb14"]
clients = [5]
models = ["TransE"]
strategies = ["local", "fedr"]
seeds = [0, 1, 2]
"""
LOCAL, FEDR = (0.30, 0.31, 0.32), (0.33, 0.33, 0.36)


def entry_of(tmp_path: Path, text: str = QUEUE) -> Entry:
    path = tmp_path / "queue.toml"
    path.write_text(text)
    (entry,) = read_queue(path, tmp_path / "data", tmp_path / "runs")
    return entry


def row(entry: Entry, strategy: str, seed: int, mrr: float, **more: object) -> Row:
    """A row as a run of this entry would leave it."""
    (cell,) = [one for one in entry.request.cells() if (one.strategy, one.seed) == (strategy, seed)]
    identity = entry.identity(cell)
    made = Row(
        key=key_of(identity, RESULTS_VERSION),
        version=RESULTS_VERSION,
        entry=entry.name,
        table=entry.table,
        **identity,
        data="0123456789abcdef",
        commits=["abc1234"],
        date="2026-01-01",
        machine={"processor": "one of them", "cores": 2},
        seconds=10.0,
        cpu_seconds=9.0,
        sessions=1,
        peak_memory_mb=400.0,
        rounds=50,
        best_round=25,
        stopped_early=True,
        all=PartRow(tail=figures(mrr)),
        parts=[PartRow(client=1, test_triples=10, tail=figures(mrr))],
    )
    return msgspec.structs.replace(made, **more)


def figures(mrr: float) -> Figures:
    return {"mrr": mrr, "hits@1": 0.1, "hits@3": 0.2, "hits@5": 0.25, "hits@10": 0.3}


def all_rows(entry: Entry) -> list[Row]:
    found = [row(entry, "local", seed, mrr) for seed, mrr in enumerate(LOCAL)]
    return found + [row(entry, "fedr", seed, mrr) for seed, mrr in enumerate(FEDR)]


def written(path: Path, rows: list[Row]) -> None:
    for one in rows:
        RowFile(path).append(one)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = all_rows(entry_of(tmp_path))
    written(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl") == (rows, [])
    assert read_rows(tmp_path / "none.jsonl") == ([], [])


@pytest.mark.parametrize("kept", [1, 9, 40, 300, -2])
def test_a_row_that_was_cut_short_is_told_and_spoils_no_other(tmp_path: Path, kept: int) -> None:
    path, (first, second, third, *_) = tmp_path / "rows.jsonl", all_rows(entry_of(tmp_path))
    written(path, [first, second])
    whole = path.read_bytes()
    cut = len(whole.splitlines(keepends=True)[0])
    path.write_bytes(whole[:cut] + whole[cut:][:kept])
    found, told = read_rows(path)
    assert found == [first]
    assert len(told) == 1
    assert "line 2: a piece of a row" in told[0]
    written(path, [second, third])
    found, told = read_rows(path)
    assert found == [first, second, third]
    assert len(told) == 1


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"key": "x"}', '{"key": "x", "curve": [1 2]}'])
def test_a_line_that_no_campaign_has_written_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UserError, match=r"rows\.jsonl"):
        read_rows(path)


def test_of_two_rows_of_one_cell_the_first_counts(tmp_path: Path) -> None:
    entry, path = entry_of(tmp_path), tmp_path / "rows.jsonl"
    first = row(entry, "local", 0, 0.3)
    written(path, [first, row(entry, "local", 0, 0.9)])
    found, told = read_rows(path)
    assert found == [first]
    assert "the first counts" in told[0]


def test_only_one_campaign_writes_a_file_and_works_in_a_folder(tmp_path: Path) -> None:
    rows, other = tmp_path / "rows.jsonl", tmp_path / "other.jsonl"
    with appending(rows, tmp_path / "runs"):
        with pytest.raises(UserError, match="another campaign writes it"), appending(rows, tmp_path / "elsewhere"):
            pass
        with pytest.raises(UserError, match="another campaign works there"), appending(other, tmp_path / "runs"):
            pass
    with appending(rows, tmp_path / "runs"):
        pass


def test_a_file_that_is_replaced_meanwhile_gets_the_row(tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "rows.jsonl", all_rows(entry_of(tmp_path))
    with appending(path, tmp_path / "runs") as file:
        file.append(first)
        (tmp_path / "new").write_bytes(path.read_bytes())
        (tmp_path / "new").replace(path)
        file.append(second)
    assert read_rows(path)[0] == [first, second]


# --- the queue --------------------------------------------------------------------------------------------------------


def test_the_projects_queue_is_sound(tmp_path: Path) -> None:
    entries = read_queue(OWN_QUEUE, tmp_path, tmp_path)
    assert [entry.name for entry in entries[:3]] == ["fedr-ddb14-transe", "fedr-ddb14-rotate", "fede-fb3-transe"]
    for entry in entries[:4]:
        assert {"rounds": 300, "eval_every": 5}.items() <= dataclasses.asdict(entry.request.settings).items()
        assert entry.request.seeds == (0, 1, 2)
    assert [entry.name for entry in only(entries, ["fedr-wn", "fede-nell"])] == ["fede-nell", "fedr-wn"]
    with pytest.raises(UserError, match="--only else"):
        only(entries, ["else"])


def test_the_same_run_of_two_entries_is_one_cell_and_another_setting_is_another(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    keys = keys_of(entry, 1)
    assert keys == keys_of(entry_of(tmp_path, QUEUE.replace("tiny", "other")), 1)
    assert not set(keys.values()) & set(keys_of(entry_of(tmp_path, QUEUE + "settings = {dim = 64}"), 1).values())
    assert not set(keys.values()) & set(keys_of(entry, 2).values())
    moved = read_queue(tmp_path / "queue.toml", tmp_path / "elsewhere", tmp_path / "others")
    assert keys_of(moved[0], 1) == keys_of(entry_of(tmp_path, QUEUE + "settings = {dim = 64}"), 1)


@pytest.mark.parametrize(
    "text",
    [
        "entry = 1",
        "[[entry]",
        "[other]",
        QUEUE + QUEUE,
        QUEUE.replace("fedr-table2", "fedr-table9"),
        QUEUE.replace('"tiny"', '"Tiny one"'),
        QUEUE.replace("[0, 1, 2]", '"0"'),
        QUEUE.replace("[0, 1, 2]", "[-1]"),
        QUEUE.replace("[5]", "[1]"),
        QUEUE.replace('["ddb14"]', '["ddb15"]'),
        QUEUE.replace('["local", "fedr"]', '["fused"]'),
        QUEUE.replace('["local", "fedr"]', "[1]"),
        QUEUE.replace("seeds", "seed"),
        QUEUE + "settings = {dim = 0}",
        QUEUE + "settings = {width = 2}",
        QUEUE + "tuned = {fede = {lr = 2}}",
    ],
)
def test_a_mistake_in_a_queue_gets_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "queue.toml").write_text(text)
    with pytest.raises(UserError) as problem:
        read_queue(tmp_path / "queue.toml", tmp_path, tmp_path)
    assert len(str(problem.value).splitlines()) == 1
    assert "queue.toml" in str(problem.value)


# --- pairs, and what they say -----------------------------------------------------------------------------------------


def test_what_is_said_holds_what_the_figures_hold(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    rows = all_rows(entry)
    report, found = report_of(entry, rows, RESULTS_VERSION)
    assert sorted(one.key for one in found) == sorted(one.key for one in rows)
    (said,) = verdicts(report, found)
    assert said == (
        "ddb14/5, TransE, FedR ≥ Local: +0.0300 ± 0.0248 (95 %, 3 paired seeds): ahead, and the interval does not "
        "hold 0; 3 of 3 seeds have this sign. The paper's +0.0255 lies inside the interval."
    )
    report, found = report_of(entry, [*rows[:3], row(entry, "fedr", 0, 0.2), *rows[4:]], RESULTS_VERSION)
    (said,) = verdicts(report, found)
    assert "no difference is shown; one below -0.2014 or above +0.1748 is ruled out at 95 %" in said
    assert "seeds would not tell it from 0" in said or "seeds would tell it from 0" in said
    report, found = report_of(entry, [rows[0], rows[3]], RESULTS_VERSION)
    assert "on one seed, which shows nothing" in next(iter(verdicts(report, found)))
    report, found = report_of(entry, rows[:3], RESULTS_VERSION)
    assert next(iter(verdicts(report, found))).endswith("not measured.")


def test_runs_that_were_cut_by_the_largest_number_of_rounds_are_told(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    rows = [*all_rows(entry)[:5], row(entry, "fedr", 2, 0.36, stopped_early=False, rounds=300, best_round=300)]
    report, found = report_of(entry, rows, RESULTS_VERSION)
    *_, said = verdicts(report, found)
    assert said.startswith("1 run of 6 came to the largest number of rounds")
    assert "FedR, seed 2 (best round 300 of 300)" in said


def test_versions_and_data_are_never_mixed_in_a_pair(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    rows = all_rows(entry)
    keys = keys_of(entry, 7)
    newer = [msgspec.structs.replace(one, version=7, key=keys[one.cell]) for one in rows[3:]]
    with pytest.raises(UserError, match="no pair"):
        require_pairable([*rows[:3], *newer])
    with pytest.raises(UserError, match="other data"):
        require_pairable([*rows[:5], msgspec.structs.replace(rows[5], data="another")])
    # Local of version 1 and FedR of version 7 stand in tables of their own, and neither has a difference.
    text = campaign_text([entry], [*rows[:3], *newer])
    assert text.count("### Does FedR beat Local?") == 2
    assert text.index("Results version 7; 3 of 6 cells") < text.index(f"Results version {RESULTS_VERSION}; 3 of 6")
    assert "paired seeds" not in text
    assert text.count("not measured.") == 2


def test_a_document_gets_the_tables_between_its_marks(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    text = campaign_text([entry], all_rows(entry))
    document = rendered("before\n<!-- rendered: campaign -->\nformer\n<!-- end of campaign -->\nafter\n", text)
    assert document.startswith("before\n")
    assert document.endswith("after\n")
    assert "former" not in document
    assert "commit abc1234; 6 runs took 1 min 0 s" in document
    assert "| ddb14/5 | TransE | FedR | 0.4461 | 0.3400 ± 0.0430 |" in document
    assert rendered(document, text) == document
    with pytest.raises(UserError, match="rendered: campaign"):
        rendered("no marks", text)
    assert "No cell" in campaign_text([entry], [])


def test_rows_that_no_entry_asks_for_stay_and_are_told(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    rows = all_rows(entry)
    assert list(orphans([entry], rows)) == []
    assert len(list(orphans([entry_of(tmp_path, QUEUE.replace("[0, 1, 2]", "[0, 1]"))], rows))) == 2


def test_the_projects_document_has_the_tables_of_the_projects_rows(tmp_path: Path) -> None:
    entries = read_queue(OWN_QUEUE, tmp_path, tmp_path)
    rows, told = read_rows(OWN_ROWS)
    assert told == []
    document = (OWN_ROWS.parents[1] / "results.md").read_text(encoding="utf-8")
    assert rendered(document, campaign_text(entries, rows)) == document, "python -m benchmarks.campaign --render"


def test_no_row_tells_of_the_machine_beyond_its_processor() -> None:
    for line in OWN_ROWS.read_text(encoding="utf-8").splitlines():
        assert set(json.loads(line)["machine"]) == {"processor", "cores", "python", "torch", "numpy", "numba"}
        assert "/" not in line.replace(str(json.loads(line)["machine"]["processor"]), "")
