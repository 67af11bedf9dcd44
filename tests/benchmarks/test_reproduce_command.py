"""The command: what it plans, what it refuses, and real runs that are not run twice."""

import dataclasses
import gzip
import json
import signal
import sys
import time
from pathlib import Path

import pytest

from benchmarks import reproduce
from benchmarks.reproduction.cells import Cell, Job, job_for
from benchmarks.reproduction.jobs import Outcome, is_finished, run_all
from launch.options import parse
from secure_kg.data.catalogue import bundled_files
from secure_kg.foundation.errors import UserError

TINY = [
    "--dataset",
    "ddb14",
    "--clients",
    "2",
    "--models",
    "transe",
    "--dim",
    "8",
    "--rounds",
    "2",
    "--eval-every",
    "1",
]


def plan(*options: str) -> list[Job]:
    request = reproduce.request_from(
        reproduce._parser().parse_args([*options, "--data-root", "data", "--runs", "runs"])
    )
    return [job_for(request, cell) for cell in request.cells()]


def test_the_whole_of_fedrs_table_2() -> None:
    jobs = plan("fedr-table2")
    assert len(jobs) == 3 * 4 * 4 * 3
    assert len({job.folder for job in jobs}) == len(jobs)
    command = " ".join(jobs[0].start)
    assert "mpirun -n 6 " in command
    for part in (
        "-m launch.fedr_secagg --preset paper",
        f"--dataset {Path('data').absolute() / 'ddb14'} --by triples --strategy local --aggregation secagg",
        "--alignment psu --min-holders 2 --model TransE --dim 128 --local-epochs 3 --lr 0.001 --batch-size 512",
        "--batch-size 512 --negatives 256",
        "--margin 10.0 --temperature 1.0 --corrupt tail --rounds 300 --eval-every 5 --patience 5 --seed 0",
        f"--out {Path('runs').absolute() / 'ddb14-c5-transe-local-secagg-seed0'}",
    ):
        assert part in command
    assert "--allow-leaky-split" not in command
    assert jobs[0].resume[-2:] == ("--resume", str(jobs[0].folder))


def test_noges_rows_of_fedrs_table_2_have_settings_of_their_own(tmp_path: Path) -> None:
    jobs = plan("fedr-table2-noge")
    assert len(jobs) == 3 * 4 * 3
    command = " ".join(jobs[0].start)
    told = "--model NoGE --dim 128 --local-epochs 3 --lr 0.01 --batch-size 1024 --dropout 0.5 --label-smoothing 0.1"
    told += " --max-norm 0.5 --means-loaded for-evaluation --moments anew --rounds 300 --eval-every 5 --patience 5"
    assert told in command
    assert "--margin" not in command
    parsed = parse(command.partition("launch.fedr_secagg ")[2].split(), "job", "", "").config
    assert parsed.network is not None
    (tmp_path / "config.toml").write_text(parsed.to_toml())
    job = dataclasses.replace(jobs[0], folder=tmp_path)
    is_finished(job)
    (tmp_path / "config.toml").write_text(parsed.to_toml().replace("dropout = 0.5", "dropout = 0.4"))
    with pytest.raises(UserError, match=r"--dropout is 0\.4 there and 0\.5 here"):
        is_finished(job)


def test_the_damaged_split_is_used_only_if_named() -> None:
    (job,) = plan(
        "fedr-table2", "--dataset", "ddb14-published", "--clients", "10", "--models", "RotatE", "--strategies", "fedr"
    )
    command = " ".join(job.start)
    assert "ddb14-fed/fed10.npz --allow-leaky-split" in command
    assert "--by" not in command


def test_seeds_come_last_of_all_so_that_time_runs_out_between_whole_comparisons() -> None:
    jobs = plan("fedr-table2", "--dataset", "wn18rr", "--clients", "5", "--models", "transe", "--seeds", "3", "4", "3")
    assert [(job.cell.seed, job.cell.strategy) for job in jobs] == [
        (seed, strategy) for seed in (3, 4) for strategy in ("local", "fede", "fedr")
    ]


def test_fedrs_table_of_kbgat() -> None:
    jobs = plan("fedr-table7", "--local-epochs", "100", "--rotate-rounds", "20", "--final-rows", "last-batch")
    assert [(job.cell.model, job.cell.strategy) for job in jobs] == [
        (model, strategy) for model in ("RotatE", "KBGAT") for strategy in ("local", "fede", "fedr")
    ]
    rotate, kbgat = " ".join(jobs[1].start), " ".join(jobs[4].start)
    assert "ddb14-fed/fed3.npz --allow-leaky-split --strategy fede" in rotate
    assert "--model RotatE --dim 128 --local-epochs 3" in rotate
    assert "--rounds 20 --eval-every 5" in rotate
    assert "--model KBGAT --dim 50 --local-epochs 100" in kbgat
    assert "--decoder-epochs 150" in kbgat
    assert "--final-rows last-batch --rounds 300" in kbgat
    assert "--rotate-" not in rotate + kbgat


def test_fedes_tables() -> None:
    jobs = plan("fede-table3", "--models", "rotate")
    assert [job.cell.strategy for job in jobs] == ["local", "entire", "fede", "fused"]
    local, entire, fede, fused = (" ".join(job.start) for job in jobs)
    assert "-m launch.entire -n 4 " in entire
    assert "--aggregation" not in entire
    assert "fb15k-237-fedlu/r3.npz" in local
    assert "--dim 256" in fede
    assert "--client-fraction" not in fede
    folders = [str(job.folder) for job in jobs]
    assert fused.endswith(f"-m launch.fuse {folders[2]} {folders[0]} --out {folders[3]}")
    assert jobs[3].needs == (jobs[2].cell, jobs[0].cell)
    *_, tenth = [job for job in plan("fede-table5") if job.cell.clients == 10 and job.cell.strategy == "fede"]
    assert "--client-fraction 0.5 --max-dropout 0.2" in " ".join(tenth.start)
    assert [job.cell.strategy for job in plan("fede-table5", "--clients", "3")] == ["local", "fede", "fused"]
    (nell,) = plan("fede-table4", "--models", "rotate", "--strategies", "local")
    assert "nell-995 --by relations --strategy local" in " ".join(nell.start)


@pytest.mark.parametrize(
    ("fraction", "declared"),
    [
        ("0.1", "--client-fraction 0.1 --max-dropout 0.2 --max-corrupt 0.0"),
        ("0.3", "--client-fraction 0.3 --max-dropout 0.2 --max-corrupt 0.1"),
        ("0.5", "--client-fraction 0.5 --max-dropout 0.2 --seed"),
        ("1", "--client-fraction 1.0 --seed"),
    ],
)
def test_sums_of_few_clients_declare_no_more_corruption_than_leaves_two_honest_ones(
    fraction: str, declared: str
) -> None:
    (job,) = plan("fede-figures", "--client-fraction", fraction)
    assert declared in " ".join(job.start)


def test_fedcqas_tables() -> None:
    jobs = plan("fedcqa-table3", "--dataset", "fb15k-237")
    assert [job.cell.strategy for job in jobs] == ["local", "central", "fede", "fedr", "fedcqa"]
    assert [job.cross_graph for job in jobs] == [False, True, True, False, True]
    local, central, _, _, fedcqa = (" ".join(job.start) for job in jobs)
    assert "mpirun -n 4 " in local
    assert "-m launch.fedcqa --preset usual" in local
    assert "fb15k-237-fedlu/r3.npz --strategy fedcqa-local --aggregation secret --alignment psu" in local
    assert "mpirun" not in central
    assert "-m launch.fedcqa -n 4 --preset usual" in central
    assert "--client-fraction" not in central
    assert "--encoder gqe --dim 400 --local-steps 1 --lr 0.002 --batch-size 64 --rounds 300000" in fedcqa
    assert "--client-fraction 0.5" in fedcqa
    assert "--score dot --published" in fedcqa
    (job,) = plan("fedcqa-table4", "--dataset", "nell-995", "--models", "tree-lstm", "--strategies", "fedcqa")
    command = " ".join(job.start)
    assert "mpirun -n 6 " in command
    assert "nell-995-q2b --by relations" in command
    assert "--published" not in command, "the public code has no other tree-LSTM"


def test_a_strategy_may_have_settings_of_its_own() -> None:
    options = ["--dataset", "fb15k-237", "--strategies", "local", "fedcqa", "--coding", "usual", "--lr", "0.02"]
    local, fedcqa = (
        " ".join(job.start) for job in plan("fedcqa-table3", *options, "--tuned", "fedcqa", "lr=0.03", "step=2")
    )
    assert "--lr 0.02 " in local
    assert "--step 1.0" in local
    assert "--score" not in local
    assert "--lr 0.03 " in fedcqa
    assert "--step 2.0" in fedcqa


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["fedcqa-table3", "--data-root", ".", "--margin", "2"],
        ["fedcqa-table3", "--data-root", ".", "--coding", "other"],
        ["fedcqa-table3", "--data-root", ".", "--tuned", "fedcqa", "lr"],
        ["fedcqa-table3", "--data-root", ".", "--tuned", "entire", "lr=1"],
        ["fedcqa-table3", "--data-root", ".", "--tuned", "fedcqa", "margin=1"],
        ["fedr-table9"],
        ["fedr-table2"],
        ["fedr-table2", "--data-root", "nowhere"],
        ["fedr-table2", "--data-root", ".", "--models", "noge"],
        ["fedr-table2", "--data-root", ".", "--strategies", "entire"],
        ["fedr-table2", "--data-root", ".", "--clients", "1"],
        ["fedr-table2", "--data-root", ".", "--jobs", "0"],
        ["fedr-table2", "--data-root", ".", "--max-minutes", "-1"],
        ["fedr-table2", "--data-root", ".", "--rounds", "x"],
        ["fedr-table2", "--data-root", ".", "--patience", "0"],
        ["fedr-table2", "--data-root", ".", "--dim", "0"],
        ["fedr-table7", "--data-root", ".", "--dim", "0"],
        ["fedr-table7", "--data-root", ".", "--rotate-rounds", "0"],
        ["fedr-table7", "--data-root", ".", "--final-rows", "none"],
        ["fedr-table2", "--data-root", ".", "--decoder-epochs", "3"],
    ],
)
def test_a_mistake_gets_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(options) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")


def test_help_names_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "fede-table5" in text
    assert "[fedr 128, fede 256, fedr-table7 50, fedr-noge 128, fedcqa 400]" in text


def test_a_dry_run_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    assert reproduce.main(["fedr-table2", *TINY, "--dry-run", "--data-root", "nowhere", "--runs", str(runs)]) == 0
    assert capsys.readouterr().out.count(": to start\n") == 3
    assert not runs.exists()


def stub(folder: Path, strategy: str, program: str, needs: tuple[Cell, ...] = ()) -> Job:
    """A run that is a few lines of Python instead of an MPI job."""
    command = (sys.executable, "-c", program, str(folder / strategy))
    return Job(Cell("ddb14", 2, "TransE", strategy, 0), folder / strategy, command, command, {}, needs)


FINISH = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.mkdir(); (p / 'summary.json').write_text('{}')"
FAIL = "import sys; sys.exit('error: no luck today')"
HANG = "import time; time.sleep(60)"


def run_stubs(jobs: list[Job], *, at_once: int = 1, seconds: float | None = None) -> dict[str, Outcome]:
    until = None if seconds is None else time.monotonic() + seconds
    ended: list[str] = []
    found = run_all(
        jobs,
        at_once=at_once,
        until=until,
        on_start=lambda job, again: None,
        on_end=lambda job, outcome: ended.append(job.cell.strategy),
    )
    assert len(ended) == len(set(ended))
    return {cell.strategy: outcome for cell, outcome in found.items()}


def test_a_failure_concerns_only_what_needs_it(tmp_path: Path) -> None:
    local, fede = stub(tmp_path, "local", FINISH), stub(tmp_path, "fede", FAIL)
    fused = stub(tmp_path, "fused", FINISH, (local.cell, fede.cell))
    found = run_stubs([fede, fused, local, stub(tmp_path, "fedr", FINISH)], at_once=2)
    assert {name: outcome.state for name, outcome in found.items()} == {
        "fede": "failed", "fused": "failed", "local": "finished", "fedr": "finished",
    }  # fmt: skip
    assert found["fede"].error == "no luck today (exit code 1)"
    assert found["fused"].error == f"needs {fede.cell}, which failed"
    assert json.loads(local.record.read_text())["peak_memory_mb"] > 0


def test_time_runs_out(tmp_path: Path) -> None:
    jobs = [stub(tmp_path, "local", HANG), stub(tmp_path, "fedr", FINISH)]
    found = run_stubs(jobs, seconds=0.5)
    assert [found[name].state for name in ("local", "fedr")] == ["interrupted", "missing"]
    (session,) = json.loads(jobs[0].record.read_text())["sessions"]
    assert session["exit_code"] == -signal.SIGTERM


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """Nations in the place of DDB14."""
    folder = tmp_path / "data" / "ddb14"
    folder.mkdir(parents=True)
    for path in bundled_files("nations"):
        (folder / f"{path.stem}.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    return folder.parent


@pytest.mark.mpi
def test_real_runs_go_on_and_are_not_run_twice(
    tmp_path: Path, data_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, found = tmp_path / "runs", tmp_path / "report.json"
    options = ["fedr-table2", *TINY, "--strategies", "local", "fedr", "--jobs", "2", "--data-root", str(data_root)]
    options += ["--runs", str(runs), "--json", str(found), "--markdown", str(tmp_path / "report.md")]

    assert reproduce.main([*options, "--max-minutes", "0"]) == 0
    assert {run["state"] for run in json.loads(found.read_text())["runs"]} == {"missing"}

    assert reproduce.main(options) == 0
    first = json.loads(found.read_text())
    assert [run["state"] for run in first["runs"]] == ["finished"] * 2
    assert all(0 < run["mrr"] < 1 and run["rounds"] == 2 and len(run["per_client"]) == 2 for run in first["runs"])
    assert {one["setting"] for one in first["deviations"]} == {"--dim", "--rounds", "--eval-every"}
    assert first["differences"][0]["verdict"].endswith("on one seed")
    assert "FedR ≥ Local" in capsys.readouterr().out

    # As an interruption after the last checkpoint would leave it.
    local, fedr = (runs / run["run"] for run in first["runs"])
    (fedr / "summary.json").unlink()
    untouched = (local / "summary.json").stat().st_mtime_ns
    assert reproduce.main(options) == 0
    second = json.loads(found.read_text())
    assert [run["mrr"] for run in second["runs"]] == [run["mrr"] for run in first["runs"]]
    assert [run["sessions"] for run in second["runs"]] == [1, 2]
    assert (local / "summary.json").stat().st_mtime_ns == untouched
    assert "FedR, seed 0: goes on" in capsys.readouterr().out

    assert reproduce.main([*options, "--lr", "0.01"]) == 2
    assert capsys.readouterr().err.endswith(
        "--lr is 0.001 there and 0.01 here; choose another --runs, or remove that run\n"
    )


@pytest.mark.mpi
def test_a_failing_run_is_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ddb14-fed").mkdir()
    (tmp_path / "ddb14-fed" / "fed2.npz").write_text("not an archive")
    options = ["fedr-table2", *TINY, "--dataset", "ddb14-published", "--strategies", "fedr"]
    options += ["--data-root", str(tmp_path), "--runs", str(tmp_path / "runs")]
    assert reproduce.main([*options, "--json", "-"]) == 1
    captured = capsys.readouterr()
    (run,) = json.loads(captured.out)["runs"]
    assert run["state"] == "failed"
    assert len(run["error"].splitlines()) == 1
    assert captured.err == ""


def test_the_command_in_a_report_names_no_place_of_this_machine() -> None:
    given = [
        "fedr-table2",
        "--data-root",
        "/some/where",
        "--seeds",
        "0",
        "1",
        "--json=x.json",
        "--runs",
        "y",
        "--jobs",
        "2",
    ]
    assert reproduce._shown(given) == ["fedr-table2", "--data-root", "DIR", "--seeds", "0", "1"]


def test_a_run_is_judged_across_graphs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nations in the place of NELL-995, all triples in one process."""
    folder, out = tmp_path / "data" / "nell-995-q2b", tmp_path / "report.json"
    folder.mkdir(parents=True)
    for path in bundled_files("nations"):
        (folder / f"{path.stem}.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    options = ["fedcqa-table3", "--dataset", "nell-995", "--strategies", "central", "--coding", "usual", "--dim", "8"]
    options += ["--rounds", "2", "--eval-every", "1", "--eval-queries", "2", "--batch-size", "8", "--json", str(out)]
    options += ["--data-root", str(folder.parent), "--runs", str(tmp_path / "runs")]
    assert reproduce.main([*options, "--tuned", "central", "lr=0.02"]) == 0
    (cell,) = json.loads(out.read_text())["cells"]
    printed = {"mrr": 0.1195, "cross mrr": 0.1246, "hits@3": 0.1287, "cross hits@3": 0.1306}
    assert cell["paper"] == pytest.approx(printed)
    assert 0 < cell["ours"]["cross mrr"]["mean"] < 1
    assert "Central alone: --lr 0.02." in capsys.readouterr().out
    (crossing,) = (tmp_path / "runs").glob("*.cross.json")
    kept = json.loads(crossing.read_text())
    kept["cross"]["mrr"] = 0.5
    crossing.write_text(json.dumps(kept))
    assert reproduce.main([*options, "--tuned", "central", "lr=0.02"]) == 0
    assert json.loads(out.read_text())["cells"][0]["ours"]["cross mrr"]["mean"] == 0.5
