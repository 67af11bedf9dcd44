"""Records of the files of a run: the same bytes as before, files of earlier versions, and lines about wrong files."""

import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest

from secure_kg.audit.records.report import AuditReport
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.checkpoints import ClientCheckpoint, ServerCheckpoint
from secure_kg.runs.records.client_result import ClientResult, Evaluation, FederationResult
from secure_kg.runs.records.record import Record, WrongRecord
from secure_kg.runs.records.summary import PeakMemory, Summary
from secure_kg.runs.run_folder import RunFolder, read_record, write_json
from secure_kg.runs.summary import comparable
from tests.support.pages import attack, full_record

RECORDED = Path(__file__).parents[2] / "vectors/run-0.1.0.tar.gz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of an earlier version."""
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


def whole(recorded: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((recorded / "summary.json").read_text())
    return value


def summary_of(value: dict[str, Any]) -> Summary:
    return Summary.from_json(value, "summary.json")


@pytest.mark.parametrize(("pattern", "kind"), [("summary.json", Summary), ("clients/*/result.json", ClientResult)])
def test_a_file_that_is_read_and_written_again_has_the_same_bytes(
    recorded: Path, tmp_path: Path, pattern: str, kind: type[Record]
) -> None:
    found = list(recorded.glob(pattern))
    assert found
    for path in found:
        write_json(tmp_path / "again.json", read_record(path, kind).to_json())
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


SERVER_PART = """{"best_mrr": 0.198, "best_round": 2, "checks_since_best": 0, "best_with": [1, 2], "elapsed": 2.5, \
"seconds": {"wait": 2.0}, "cpu_seconds": {"wait": 0.5}, "bytes_up": {"1": 7}, "bytes_down": {"1": 8}, "dropouts": [], \
"abandoned_sums": [], "setup": {"seconds": 1.5, "bytes_up": 5, "bytes_down": 6}}"""
CLIENT_PART = """{"seconds": {"train": 0.4}, "cpu_seconds": {"train": 0.3}, "clipped": 0, "max_error": 1.5e-08, \
"loss": [1.85, 796, 4], "judge": {"best": {"mrr": -1.0, "round": 2, "checks_since": 0}, "evaluations": 0}, \
"count": {"trained": 2, "evaluated": 2, "judged": 2, "refused": 0, "added": 2, "opening": 0}, "best_round": 2, \
"trained": "0a6c"}"""


@pytest.mark.parametrize(("text", "kind"), [(SERVER_PART, ServerCheckpoint), (CLIENT_PART, ClientCheckpoint)])
def test_a_part_of_a_checkpoint_is_read_and_written_as_it_was(text: str, kind: type[Record]) -> None:
    record = json.loads(text)
    assert json.dumps(kind.from_json(record, "part").to_json()) == text
    with pytest.raises(WrongRecord, match=r"part: not a record of a \w+'s checkpoint"):
        kind.from_json({**record, "best_round": "first"}, "part")


def test_a_part_of_an_earlier_version_lacks_what_was_not_counted() -> None:
    client, server = json.loads(CLIENT_PART), json.loads(SERVER_PART)
    for name in ("cpu_seconds", "count", "best_round", "trained"):
        del client[name]
    del server["best_with"]
    read = ClientCheckpoint.from_json(client, "part")
    assert (read.cpu_seconds, read.count.trained, read.best_round, read.trained) == (None, 0, 0, None)
    assert ServerCheckpoint.from_json(server, "part").best_with is None


def test_lines_of_evaluations_that_are_read_and_written_again_have_the_same_bytes(recorded: Path) -> None:
    text = (recorded / "metrics.jsonl").read_text()
    folder = RunFolder(recorded)
    assert len(folder.metrics()) == 2
    assert all(line.figures["valid"]["mrr"] > 0 and line.clients == 3 for line in folder.metrics())
    folder.forget_metrics_after(10**6)
    assert (recorded / "metrics.jsonl").read_text() == text


def test_figures_of_a_learner_are_an_open_mapping(recorded: Path) -> None:
    summary = summary_of(whole(recorded))
    assert summary.figures.keys() == {"mrr", "hits@1", "hits@3", "hits@10", "both_sides"}
    assert summary.told
    (first, *_) = summary.clients
    assert first.figures.keys() == summary.figures.keys()
    assert first.about.keys() >= {"entities", "relations", "split_faults"}
    assert first.test_triples == 66
    other = ClientResult(client=1, figures={"error": 0.5}, metrics={}, about={"operators": 3})
    assert ClientResult.from_json(other.to_json(), "") == other


def test_keys_in_another_order_are_the_same_record(recorded: Path) -> None:
    items = list(whole(recorded).items())
    random.Random(3).shuffle(items)
    shuffled = summary_of(dict(items))
    assert shuffled == summary_of(whole(recorded))
    (client, *_) = whole(recorded)["clients"]
    result = ClientResult.from_json(dict(sorted(client.items())), "")
    assert (result.figures["mrr"], result.test_triples) == (client["mrr"], client["test_triples"])
    assert result.split_faults == client["split_faults"]


def test_what_earlier_versions_lack_has_a_default(recorded: Path) -> None:
    value = whole(recorded)
    for name in ("leaky_split", "metrics", "split_blemishes", "transcript", "cpu_seconds", "cpu_seconds_server"):
        del value[name]
    del value["corrupt_clients"]
    value["peak_memory_mb"] = 12.5
    for client in value["clients"]:
        for name in ("metrics", "cpu_seconds", "peak_memory_mb", "refused_evaluations"):
            del client[name]
    older = summary_of(value)
    assert (older.leaks, older.transcript, older.corrupt_clients, older.peak_memory_mb) == (None, None, 0, 12.5)
    assert older.clients[0].test_triples == 66
    assert "cpu_seconds" not in older.clients[0].to_json()
    assert comparable(summary_of(whole(recorded)), older)
    assert isinstance(summary_of(whole(recorded)).peak_memory_mb, PeakMemory)


def test_what_another_version_adds_is_kept_and_does_no_harm(recorded: Path) -> None:
    newer = whole(recorded) | {"colour": None, "config": whole(recorded)["config"] | {"noise": "none"}}
    newer["dropouts"] = [{"client": 1, "round": 2, "step": "train", "mood": "tired"}]
    summary = summary_of(newer)
    assert summary.to_json()["colour"] is None
    assert summary.told
    assert comparable(summary, summary_of(whole(recorded)))
    assert comparable(summary_of(whole(recorded)), summary)


def test_evaluations_are_joined_with_what_a_client_has_read() -> None:
    line = Evaluation(round=4, seconds=1.5, clients=3, bytes_up=1, bytes_down=2)
    assert line.to_json() == {"round": 4, "seconds": 1.5, "clients": 3, "bytes_up": 1, "bytes_down": 2}
    read = Evaluation.from_json({"round": 4, "valid": {"mrr": 0.5}}, "federation.jsonl")
    assert line.read_as(read).figures == {"valid": {"mrr": 0.5}}
    assert read.to_json() == {"round": 4, "valid": {"mrr": 0.5}}


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Summary, {}, "not a summary of a run (Object missing required field `test_triples`)"),
        (Summary, [], "not a summary of a run"),
        (ClientResult, {"client": "one"}, "not a result of a client (Expected `int`, got `str` - at `$.client`)"),
        (FederationResult, {"mrr": 0.5}, "not a result of a federation (Object missing required field `test_triples`)"),
        (Evaluation, {"loss": 0.5}, "not a line of an evaluation (Object missing required field `round`)"),
    ],
)
def test_a_file_that_is_no_such_record_is_named_in_one_line(kind: type[Record], value: Any, words: str) -> None:
    with pytest.raises(WrongRecord) as caught:
        kind.from_json(value, "somewhere/file.json")
    assert str(caught.value) == f"somewhere/file.json: {words}"


def test_wrong_inner_parts_are_wrong_records(recorded: Path) -> None:
    wrong = {"clients": [{"client": 1}], "rounds": "many", "config": None, "dropouts": [1], "bytes_up": 0.5}
    for name, value in wrong.items():
        with pytest.raises(UserError, match=r"not a (summary of a run|line of a client) \("):
            summary_of(whole(recorded) | {name: value})


def test_the_report_of_an_audit_is_a_record_too() -> None:
    value = full_record()
    value["ledger"] = [one | {"by_round": {"1": {"messages": 2, "bytes": 3}}} for one in value["ledger"]]
    report = AuditReport.from_json(value, "audit.json")
    assert report.to_json() == value
    assert report.ledger[0].by_round["1"].bytes == 3
    assert list(report.to_json()["ledger"][0])[:5] == ["kind", "field", "direction", "purpose", "class"]
    with pytest.raises(WrongRecord, match=r"^audit.json: not a report of an audit \(Expected `bool`, got `str`"):
        AuditReport.from_json(value | {"attacks": [attack("seed", "client 1", succeeded="no")]}, "audit.json")
