"""Records of earlier versions stay readable: the run in tests/vectors was recorded by version 0.1.0."""

import shutil
import tarfile
from pathlib import Path

import pytest

from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import AuditedRun, open_run
from secure_kg.federation.plan.settings import FORMAT, RunConfig

ARCHIVE = Path(__file__).parents[2] / "vectors" / "run-0.1.0.tar.gz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FedR on Nations, 3 clients, secagg, private union, 4 rounds, 2 evaluations, with transcript and receipts."""
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "recorded"


def high(run: AuditedRun) -> list[str]:
    return [finding.id for finding in audit(run).findings if finding.severity != "info"]


def test_every_sum_of_it_is_computed_again(recorded: Path) -> None:
    found = audit(open_run(recorded))
    assert [finding.id for finding in found.findings if finding.severity != "info"] == []
    assert open_run(recorded).config.format == 1


def test_a_changed_record_is_still_noticed(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recorded, copy)
    (transcript,) = copy.glob("transcript-*.bin")
    content = bytearray(transcript.read_bytes())
    content[len(content) // 2] ^= 1
    transcript.write_bytes(content)
    assert high(open_run(copy))


def test_new_runs_say_their_format() -> None:
    assert RunConfig().format == FORMAT
    assert f"format = {FORMAT}" in RunConfig().to_toml()
