"""Runs of clients that are broken on purpose: each is caught by the check that is meant for it."""

from pathlib import Path

import pytest

from benchmarks.insecure_runs import insecure_run
from benchmarks.insecure_variants import VARIANTS
from tests.support.audited_runs import audited, ids

pytestmark = pytest.mark.long

MEANT_FOR = {
    "plain-twin": "clear-rows",
    "no-masks": "masked-values-not-uniform",
    "reused-masks": "mask-reused",
    "unit-weights": "union-weights-not-uniform",
    "short-seeds": "weak-seeds",
    "short-mask-keys": "padded-secrets",
}


def test_there_is_a_check_for_every_variant() -> None:
    assert MEANT_FOR.keys() == VARIANTS.keys()


@pytest.mark.parametrize("variant", MEANT_FOR)
def test_a_broken_variant_is_caught_by_its_check(variant: str, tmp_path: Path) -> None:
    insecure_run(variant, tmp_path / "run")
    found = audited(tmp_path / "run")
    assert MEANT_FOR[variant] in ids(found, "high")
    assert found.exit_code == 3


def test_the_sound_twin_of_the_same_run_is_not(tmp_path: Path) -> None:
    insecure_run(None, tmp_path / "run", vanish=(4, 2))
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert found.exit_code == 0


def test_reused_masks_are_caught_under_secret_sums_too(tmp_path: Path) -> None:
    insecure_run("reused-masks", tmp_path / "run", aggregation="secret")
    assert "mask-reused" in ids(audited(tmp_path / "run"), "high")
