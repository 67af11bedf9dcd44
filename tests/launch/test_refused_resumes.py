"""A resumed run that is refused stays as it was: complete, with its summary."""

from pathlib import Path

from launch import fede
from tests.support.jobs_in_threads import run_in_threads

PRIVATE = ("--strategy", "all-rows", "--dp", "sgd", "--epsilon", "8", "--delta", "1e-5")
SMALL = ("--dataset", "nations", "--rounds", "2", "--dim", "4", "--out", "run")


def test_edited_settings_of_a_private_run_are_refused_and_its_summary_stays(tmp_path: Path) -> None:
    assert run_in_threads(4, *SMALL, *PRIVATE, cwd=tmp_path, launcher=fede.main).code == 0
    config, summary = tmp_path / "run" / "config.toml", tmp_path / "run" / "summary.json"
    settings, result = config.read_text(), summary.read_bytes()
    for edited, words in (
        (settings.replace("epsilon = 8.0", "epsilon = 9.0"), "epsilon = 9.0, and the run was made with 8.0"),
        (settings.replace("rounds = 2", "rounds = 4"), "made under other privacy settings"),
    ):
        assert edited != settings
        config.write_text(edited)
        done = run_in_threads(None, "--resume", "run", cwd=tmp_path, launcher=fede.main)
        (line,) = done.errors.splitlines()
        assert (done.code, words in line) == (2, True)
        assert (config.read_text(), summary.read_bytes()) == (edited, result)
    config.write_text(settings)
    assert run_in_threads(None, "--resume", "run", cwd=tmp_path, launcher=fede.main).code == 0


def test_a_run_that_a_client_cannot_go_on_with_stays_as_it_was(tmp_path: Path) -> None:
    """More rounds are written down once all parties go on, and not before."""
    assert run_in_threads(3, *SMALL, cwd=tmp_path, launcher=fede.main).code == 0
    config, summary = tmp_path / "run" / "config.toml", tmp_path / "run" / "summary.json"
    settings, result = config.read_text(), summary.read_bytes()
    kept = tmp_path / "run" / "clients" / "2" / "alignment.safetensors"
    aligned = kept.read_bytes()
    kept.unlink()
    assert run_in_threads(None, "--resume", "run", "--rounds", "3", cwd=tmp_path, launcher=fede.main).code == 2
    assert (config.read_text(), summary.read_bytes()) == (settings, result)
    kept.write_bytes(aligned)
    assert run_in_threads(None, "--resume", "run", "--rounds", "3", cwd=tmp_path, launcher=fede.main).code == 0
    assert "rounds = 3" in config.read_text()
    assert summary.read_bytes() != result
