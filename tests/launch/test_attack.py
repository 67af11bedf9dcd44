"""`launch.attack`: staged federations and recorded runs, their files, and mistakes in one line."""

import json
from pathlib import Path

import pytest

import launch.audit
from launch.attack import main
from tests.support.federation_in_threads import nations, run_federation, small_config

Capture = pytest.CaptureFixture[str]
BRIEFLY = ["--rounds", "3", "--every", "2", "--canaries", "10", "--targets", "30", "--groups", "1", "--dim", "8",
           "--negatives", "14", "--local-epochs", "1"]  # fmt: skip


@pytest.fixture(scope="module", params=["plain", "secagg"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp(request.param) / "run"
    config = small_config(strategy="fede", clients=3, aggregation=request.param, transcript=True, seed=0)
    run_federation(config, nations(3), path).done()
    return request.param, path


def test_a_federation_is_staged_and_told_to_people_and_programs(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(["--dataset", "nations", "--aggregation", "secagg", *BRIEFLY, "--out", str(out)]) == 0
    assert "Canaries" in capsys.readouterr().out
    report = json.loads((out / "attack.json").read_text())
    seen = {(one["attack"], one["variant"], one["view"], one["targets"]) for one in report["outcomes"]}
    assert ("A_SI", "mended", "means", "canaries") in seen
    assert ("A_CIP", "as printed", "means", "real") in seen
    assert ("A_CIA", "mended", "means", "canaries") in seen
    assert ("A_SI", "mended", "masked uploads", "attribution") in seen
    assert ("attacker alone", "", "its own triples", "corrupted") in seen
    assert {one["round"] for one in report["outcomes"] if one["attack"] == "A_CIP"} == {2, 3}
    assert 0 <= report["holders_told"] <= 1
    page = (out / "attack.html").read_text()
    assert page.count("<polyline") > 10
    assert "http" not in page.replace("http-equiv", "")  # self-contained


@pytest.mark.slow
def test_bilinear_models_and_json_alone(tmp_path: Path, capsys: Capture) -> None:
    words = ["--dataset", "nations", "--model", "complex", "--clients", "2", "--active"]
    assert main([*words, *BRIEFLY, "--json", "-", "--out", str(tmp_path / "out")]) == 0
    report = json.loads(capsys.readouterr().out)
    attacks = {(one["attack"], one["variant"]) for one in report["outcomes"]}
    assert ("A_SI", "mended") in attacks
    assert ("A_SI", "as printed") not in attacks
    assert not any(one["targets"] == "attribution" for one in report["outcomes"])  # there is no third client


def test_a_recorded_run_is_attacked_by_its_server(recorded: tuple[str, Path], tmp_path: Path) -> None:
    aggregation, run = recorded
    assert main([str(run), "--every", "2", "--out", str(tmp_path / "out")]) == 0
    report = json.loads((tmp_path / "out" / "attack.json").read_text())
    name = "upload" if aggregation == "plain" else "masked upload"
    assert {(one["victim"], one["round"]) for one in report["outcomes"] if one["view"] == name} == {
        (2, 2), (2, 4), (3, 2), (3, 4)
    }  # fmt: skip
    assert {one["targets"] for one in report["outcomes"]} == {"real"}
    assert any(one["view"] == "means" for one in report["outcomes"])
    assert any(one["attack"] == "white box" for one in report["outcomes"])


def test_an_audit_has_the_attacks_among_its_own(recorded: tuple[str, Path], tmp_path: Path) -> None:
    aggregation, run = recorded
    words = [str(run), "--truth", str(run / "clients"), "--membership", "--out", str(tmp_path / "out")]
    assert launch.audit.main(words) in (0, 3)
    attacks = {one["id"]: one for one in json.loads((tmp_path / "out" / "audit.json").read_text())["attacks"]}
    assert "membership-means" in attacks
    assert ("membership-upload" in attacks) == (aggregation == "plain")
    assert "Membership of triples" in (tmp_path / "out" / "audit.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give RUN, or --dataset"),
        (["nowhere"], "no such run folder"),
        (["nowhere", "--rounds", "5"], "--rounds: a recorded run has no use for it"),
        (["--dataset", "umls", "--truth", "."], "--truth: an experiment without RUN"),
        (["--dataset", "umls", "--model", "RESCAL"], "membership attacks know TransE"),
        (["--dataset", "umls", "--clients", "1"], "at least 2"),
        (["--dataset", "umls", "--active", "all"], "targets are canaries"),
        (["--dataset", "umls", "--every", "0"], "must be at least 1"),
        (["--dataset", "nations", "--canaries", "100000"], "no room for"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], told: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip()
    assert told in said
    assert "\n" not in said
    assert not (tmp_path / "out").exists()


def test_a_run_of_relations_and_an_audit_without_truth_are_refused(tmp_path: Path, capsys: Capture) -> None:
    run_federation(small_config(clients=2, transcript=True), nations(2), tmp_path / "run").done()
    assert main([str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert "must be one of FedE" in capsys.readouterr().err
    assert launch.audit.main([str(tmp_path / "run"), "--membership", "--out", str(tmp_path / "out")]) == 2
    assert "--membership needs --truth" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_has_room_for_the_noise_of_a_small_epsilon_and_bounds_every_attack_on_canaries(tmp_path: Path) -> None:
    words = ["--dataset", "kinships", "--model", "distmult", "--dp", "sgd", "--epsilon", "0.1", "none"]
    words += ["--delta", "1e-5", "--rounds", "4", "--canaries", "20", "--targets", "20", "--groups", "1", "--dim", "8"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    private, open_ = json.loads((tmp_path / "sweep.json").read_text())["reports"]
    assert private["bound"]["epsilon"] == pytest.approx(0.1, rel=0.01)
    assert 0.5 < private["bound"]["auc"] < 0.6
    assert open_["bound"] is None
    assert (tmp_path / "epsilon-0.1" / "attack.html").is_file()
    assert "epsilon none" in (tmp_path / "sweep.html").read_text()
