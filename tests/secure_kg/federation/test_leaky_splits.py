"""A damaged split is refused with counts; where it is allowed, the result says so before anything else."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from launch.results import show_results
from secure_kg.data.client_data import load_graph
from secure_kg.evaluation.metric_names import METRICS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import DataError, UserError
from secure_kg.report.page import run_report
from secure_kg.runs.records.client_result import ClientResult
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.split_record import blemish_note, blemishes, leak_warning, leaky_split
from secure_kg.runs.summary import comparable, summarise
from tests.support.federation_in_threads import run_federation, small_config
from tests.support.leaky_archive import write_archive


def settings(path: Path, **changes: Any) -> RunConfig:
    return small_config(dataset=str(path), rounds=2, clients=3, **changes)


def read(summary: dict[str, Any]) -> Summary:
    return Summary.from_json(summary, "summary.json")


def first_line(summary: Summary, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    show_results(summary, folder)
    return capsys.readouterr().out.split("\n")[0]


def test_damage_is_refused_in_the_same_words_by_every_client(tmp_path: Path) -> None:
    write_archive(tmp_path / "fed3.npz", 3)
    lines = set()
    for client in (1, 2, 3):
        with pytest.raises(DataError) as caught:
            load_graph(settings(tmp_path / "fed3.npz"), 3, client)
        lines.add(str(caught.value))
    (line,) = lines
    total = 3 * 66 + 8
    for expected in (
        "fed3.npz: damaged split, refused without --allow-leaky-split: ",
        f"5 of {total} test triples also stand in train",
        f"3 of {total} test triples stand in another client's train only",
        "2 repeated triples in train",
    ):
        assert expected in line
    assert "\n" not in line


def test_an_allowed_leak_comes_first_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(tmp_path / "fed3.npz", 3, untrained=True)
    config = settings(tmp_path / "fed3.npz", allow_leaky_split=True)
    graphs = [load_graph(config, 3, client) for client in (1, 2, 3)]
    outcome = run_federation(config, graphs, tmp_path / "run").done()
    folder = RunFolder(tmp_path / "run")
    folder.write_summary(summarise(config, outcome, folder))

    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert next(iter(summary)) == "leaky_split"
    total = sum(len(graph.test) for graph in graphs)
    leaky = summary["leaky_split"]
    assert (leaky["test_trained_on"], leaky["test_in_train"], leaky["test_in_other_train"]) == (8, 5, 3)
    assert (leaky["test_triples"], leaky["repeated_in_train"], leaky["clients_counted"]) == (total, 2, 3)
    warning = (
        f"LEAKY SPLIT: 8 of {total} test triples were trained on, 3 of them by other clients only; these figures are "
        "not comparable with those of a sound split"
    )
    record = read(summary)
    assert first_line(record, folder.path, capsys) == warning
    page = run_report(record, folder.all_metrics(), folder.settings())
    assert page.index(f"<p class='warning'>{warning}</p>") < page.index("<h1>")

    results = [json.loads((folder.client(number) / "result.json").read_text()) for number in (1, 2, 3)]
    assert [result["split_faults"]["test_in_train"] for result in results] == [5, 0, 0]
    assert [result["split_faults"]["untrained_entities"] for result in results] == [1, 0, 0]
    assert summary["split_blemishes"]["test_with_untrained"] == 1
    assert "1 entities and 0 relations" in (blemish_note(record.split_blemishes) or "")
    for values in (summary, *results):
        assert values["metrics"]["tail"] == {name: values[name] for name in METRICS}
        assert values["metrics"]["both"] == values["both_sides"]
        assert values["metrics"].keys() == {"tail", "both", "sides", "ties", "weights", "candidates"}

    shutil.rmtree(tmp_path / "run/clients/1")  # the client with the damage is elsewhere
    partly = first_line(summarise(config, outcome, folder), folder.path, capsys)
    assert "checked for 2 of 3 clients only" in partly
    shutil.rmtree(tmp_path / "run/clients")
    elsewhere = summarise(config, outcome, folder)
    assert next(iter(elsewhere.to_json())) == "leaky_split"
    unchecked = "LEAKY SPLIT ALLOWED (--allow-leaky-split): the split was not checked by the server; "
    assert first_line(elsewhere, folder.path, capsys).startswith(unchecked)
    assert elsewhere.split_blemishes is None


def test_a_sound_split_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(tmp_path / "fed3.npz", 3, leaky=False)
    config = settings(tmp_path / "fed3.npz")
    graphs = [load_graph(config, 3, client) for client in (1, 2, 3)]
    outcome = run_federation(config, graphs, tmp_path / "run").done()
    folder = RunFolder(tmp_path / "run")
    for allowed in (False, True):
        summary = summarise(settings(tmp_path / "fed3.npz", allow_leaky_split=allowed), outcome, folder)
        assert next(iter(summary.to_json().items())) == ("leaky_split", None)
        show_results(summary, folder.path)
        assert "LEAKY" not in capsys.readouterr().out
        assert "class='warning'" not in run_report(summary, folder.all_metrics(), folder.settings())
    assert blemish_note(summary.split_blemishes) is None

    whole = summary.to_json()
    lacking = {name: whole[name] for name in whole.keys() - {"leaky_split", "metrics", "split_blemishes"}}
    older, leaky = read(lacking), read(whole | {"leaky_split": {"test_trained_on": 1}})
    assert comparable(summary, older)
    assert comparable(older, summary)
    assert comparable(summary, summary)
    assert not comparable(summary, leaky)
    assert comparable(leaky, older)  # it does not say
    with pytest.raises(UserError, match="not a summary of a run"):
        read({"config": {}})
    show_results(older, folder.path)  # an older run is shown again as before


def test_damage_without_trained_test_triples_is_named() -> None:
    faults = {"valid_triples": 4, "test_triples": 6, "valid_in_train": 2}
    result = ClientResult(client=1, about={"split_faults": faults})
    leaky = leaky_split([result], 3, allowed=True)
    warning = leak_warning(leaky)
    assert warning == (
        "LEAKY SPLIT: 2 of 4 valid triples also stand in train (counted for 1 of 3 clients); these figures are not "
        "comparable with those of a sound split"
    )
    older = ClientResult.from_json({"client": 1}, "result.json")  # a result of an earlier version
    assert leaky_split([older], 1, allowed=False) is None
    assert blemishes([older]) is None
