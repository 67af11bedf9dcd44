"""Settings of private training: what is refused in one line, what stays as it was, and how much noise there is."""

import dataclasses
import math
import os
from pathlib import Path
from typing import Any

import pytest

from launch import entire, fede, local
from launch.options import parse
from protocols.sums.noise_shares import NoiseShares, integer_sensitivity, read_shares
from secure_kg.federation.plan.presets import PRESETS
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.privacy.accounting.accountant import Release, epsilon_of
from secure_kg.privacy.accounting.federated import calibrated
from secure_kg.privacy.accounting.releases import Budget
from secure_kg.privacy.accounting.spending import BudgetSpent
from secure_kg.privacy.release_record import FILE, ReleaseRecord, terms_of
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.privacy.training_config import PrivateTrainingConfig
from secure_kg.runs.run_folder import RunFolder
from tests.support.private_runs import CLIENTS, private_config

BUDGET = ("--dp", "sgd", "--epsilon", "16", "--delta", "1e-5")
ADAFEST = (*BUDGET, "--dp", "adafest")
COUNTS = (*BUDGET, "--dp", "counts")


def settings(*arguments: str, launcher: Any = fede) -> RunConfig:
    return parse(arguments, "job", "", "", launcher.LAUNCHER.defaults).config


def test_the_command_line_says_all_of_it() -> None:
    config = settings(*BUDGET, "--strategy", "all-rows", "--dp-noise", "full", "--public-evaluation", "--patience", "3")
    assert config.privacy == PrivacyConfig(epsilon=16.0, delta=1e-5, dp_noise="full", public_evaluation=True)
    for name, value in PRESETS["private"].items():
        assert getattr(config.training, name, getattr(config, name, None)) == value
    assert RunConfig.from_toml(config.to_toml(), "a file") == config
    assert settings(*BUDGET, launcher=local).strategy == "local"


def test_the_preset_is_what_training_in_one_place_takes() -> None:
    """Control rows without a federation would compare nothing if one of the two were changed alone."""
    central, config = PrivateTrainingConfig(), settings(*BUDGET, "--strategy", "all-rows")
    for name in ("model", "dim", "negatives", "margin", "temperature", "corrupt"):
        assert getattr(config.training, name) == getattr(central, name)
    assert config.privacy is not None
    for name in ("clip", "last_step", "sampling"):
        assert getattr(config.privacy, f"dp_{name}") == getattr(central, name)
    assert config.rounds == central.steps + 1  # the first one agrees on first rows


def test_the_usual_step_falls_with_the_noise_that_the_budget_asks_for() -> None:
    def first_step(*arguments: str) -> float:
        private = RunPlan(dataclasses.replace(settings(*BUDGET, *arguments), clients=5), 5).private
        assert private is not None
        return private.step_at(private.first_round)

    rows = ("--strategy", "all-rows")
    assert first_step(*rows) == pytest.approx(PrivateTrainingConfig().step, rel=0.01)
    assert first_step(*rows, "--dp-noise", "full") == first_step(*rows)
    assert first_step(*rows, "--epsilon", "4") == pytest.approx(0.0212, rel=0.02)
    assert first_step(*rows, "--epsilon", "4", "--dp-step", "0.05") == 0.05
    assert first_step("--epsilon", "4") == PrivateTrainingConfig().step  # FedE


@pytest.mark.parametrize("clients", [3, 5, 10])
def test_the_preset_has_room_for_rows_that_are_not_shared(clients: int) -> None:
    """A smaller last step, or more candidates, would be too fine for a ring of 32 bits under FedE."""
    for epsilon in ("16", "4"):
        dataclasses.replace(settings(*BUDGET, "--epsilon", epsilon), clients=clients)  # it refuses what has no room
    finer = PrivacyConfig(epsilon=4.0, delta=1e-5, dp_last_step=0.01)
    with pytest.raises(UserError, match="too coarse for so small a step; --ring-bits 64"):
        dataclasses.replace(settings(*BUDGET), clients=clients, privacy=finer)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--dp", "sgd", "--epsilon", "1"], "--delta is missing beside --epsilon"),
        (["--dp", "sgd", "--delta", "1e-5"], "--epsilon is missing beside --delta"),
        (["--dp", "sgd"], "needs a budget"),
        (["--epsilon", "1"], "--epsilon is for private training: give --dp sgd"),
        (["--dp-clip", "1"], "--dp-clip is for private training: give --dp sgd"),
        (["--dp-count-width", "8"], "--dp-count-width is for private training: give --dp counts"),
        (["--dp", "laplace"], "--dp laplace: choose one of"),
        ([*BUDGET, "--dp-row-share", "0.2"], "--dp-row-share is for --dp adafest, not for sgd"),
        ([*ADAFEST, "--dp-count-width", "8"], "--dp-count-width is for --dp counts, not for adafest"),
        ([*ADAFEST, "--dp-noise", "shares"], "--dp-noise shares: under --dp adafest every client chooses rows"),
        ([*BUDGET, "--dp", "flames", "--dp-noise", "shares"], "would need another protocol"),
        ([*ADAFEST, "--dp-row-share", "1"], "--dp-row-share must lie between 1e-06 and"),
        ([*ADAFEST, "--dp-row-threshold", "nan"], "--dp-row-threshold must be a number of at least 0"),
        ([*COUNTS, "--dp-count-threshold", "-1"], "--dp-count-threshold must be a number of at least 0"),
        ([*COUNTS, "--dp-count-width", "0"], "--dp-count-width must lie between 1 and 65536"),
        ([*COUNTS, "--dp-clip", "1"], "--dp-clip is for --dp sgd or adafest or flames, not for counts"),
        ([*COUNTS, "--dim", "8"], "--dim: --dp counts trains nothing"),
        ([*COUNTS, "--preset", "small"], "--preset: --dp counts trains nothing"),
        ([*COUNTS, "--rounds", "5"], "--rounds 5: --dp counts is one release"),
        ([*COUNTS, "--strategy", "all-rows"], "--strategy all-rows: under --dp counts the table has a row for every"),
        ([*COUNTS, "--strategy", "local"], "--strategy local: under --dp counts the table has a row for every"),
        ([*BUDGET, "--patience", "3"], "--patience: under --dp validation needs --public-evaluation"),
        ([*BUDGET, "--eval-every", "3"], "--eval-every: under --dp validation needs --public-evaluation"),
        ([*BUDGET, "--client-fraction", "0.5"], "--client-fraction: under --dp all clients are in every round"),
        ([*BUDGET, "--min-holders", "2"], "--min-holders: under --dp every client adds to every row"),
        ([*BUDGET, "--allow-leaky-split"], "--allow-leaky-split: under --dp"),
        ([*BUDGET, "--rounds", "1"], "--rounds must be at least 2 under --dp"),
        ([*BUDGET, "--epsilon", "-1"], "finite epsilon above 0"),
        ([*BUDGET, "--delta", "2"], "delta"),
        ([*BUDGET, "--dp-sampling", "0"], "--dp-sampling must lie between 1e-09 and 1"),
        ([*BUDGET, "--dp-last-step", "2"], "--dp-last-step must lie between 1e-09 and 1"),
        ([*BUDGET, "--dp-step", "nan"], "--dp-step must lie between 1e-09 and 1e+09"),
        ([*BUDGET, "--strategy", "fedcqa"], "--strategy fedcqa: choose one of"),
        (["--strategy", "all-rows", "--model", "rotate"], "rows of RotatE differ in width"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], line: str) -> None:
    with pytest.raises(UserError) as refused:
        settings(*arguments)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_strategies_without_private_gradients_are_refused() -> None:
    privacy = PrivacyConfig(epsilon=1.0, delta=1e-5)
    with pytest.raises(UserError, match="trains on queries"):
        RunConfig(strategy="fedcqa", privacy=privacy)
    with pytest.raises(UserError, match="all triples are in one place"):
        RunConfig(strategy="entire", aggregation="plain", privacy=privacy)
    with pytest.raises(UserError, match="unknown option --dp"):
        settings(*BUDGET, launcher=entire)


def test_a_delta_that_does_not_pay_for_the_draws_is_refused() -> None:
    with pytest.raises(UserError, match="drawing noise alone may cost"):
        private_config(epsilon=60.0)


def test_settings_without_privacy_agree_as_they_did_before_there_was_any() -> None:
    """The digest of the default settings, of format 4."""
    before = "017e0fbc4e5cbd4fd2e9713ccc69ec7d9bb9348b8cf4825319bbd1c7db6583a3"
    assert RunConfig().digest().hex() == before
    assert "privacy" not in RunConfig().told()
    private = private_config()
    assert private.digest() != private_config(epsilon=9.0).digest()


def test_a_private_run_is_resumed_with_the_rounds_that_it_began_with(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", private_config())
    RunFolder.create(tmp_path / "other", dataclasses.replace(private_config(), privacy=None))
    assert settings("--resume", str(tmp_path / "run")).privacy == private_config().privacy
    for name, arguments, line in (
        ("run", ["--rounds", "9"], "was started with 4"),
        ("run", ["--epsilon", "9"], "was started with 8"),
        ("other", ["--dp", "sgd"], "was started without --dp"),
    ):
        with pytest.raises(UserError, match=line):
            settings("--resume", str(tmp_path / name), *arguments)


# --- how much noise there is ---


@pytest.mark.parametrize("strategy", ["all-rows", "fede", "fedr"])
@pytest.mark.parametrize("rounds", [2, 3, 201])
def test_every_round_has_the_noise_that_the_budget_asks_for(strategy: str, rounds: int) -> None:
    """Reckoned anew from what is drawn: shares of honest clients, against the sensitivity in integers."""
    config = private_config(strategy=strategy, rounds=rounds, max_corrupt=0.25, max_dropout=0.25)
    plan = RunPlan(config, CLIENTS)
    block, private = plan.blocks[0], plan.private
    shares, unit = read_shares(block.noise), plan.row_layout(block, 7).codec.unit
    assert private is not None
    assert (shares.first_round, shares.last_round, shares.needed) == (2, rounds, CLIENTS - 2)
    releases = []
    for number in range(2, rounds + 1):
        moved = integer_sensitivity(private.step_at(number) * CLIENTS * private.privacy.dp_clip, unit, 6 * 4 + 4)
        drawn = shares.needed * (shares.share_in(number) / unit) ** 2 - 4
        releases.append((Release(math.sqrt(drawn) / moved), 1))
    spent = epsilon_of(releases, private.calibrated.delta_of_accountant)
    assert 7.9 < spent <= 8.0
    if strategy != "all-rows":
        assert spent < 8.0 / (1 + 2**-10)  # room for the other table


def test_noise_falls_linearly_with_the_step() -> None:
    shares = NoiseShares(2.0, 3, first_round=2, last_round=10, last=0.25)
    assert [shares.left_in(number) for number in (1, 2, 6, 10, 11)] == [1.0, 1.0, 0.625, 0.25, 0.25]
    assert read_shares(shares.text) == shares
    assert shares.bound_in(10) == shares.bound / 4
    assert shares.bound_in(1) == 0
    assert "last" not in NoiseShares(2.0, 3).text


def test_full_noise_is_all_of_it_from_one_client() -> None:
    plan = RunPlan(private_config(dp_noise="full"), CLIENTS)
    alone = read_shares(plan.blocks[0].noise)
    assert (alone.needed, alone.share) == (1, alone.deviation)
    assert plan.least_participants == 2


def test_calibration_leaves_room_for_what_draws_cost() -> None:
    budget = Budget(4.0, 1e-6)
    found = calibrated(budget, 100, 1.0, 10**6, 5)
    parts = found.delta_of_accountant, found.delta_of_sampler, found.delta_of_tails
    assert sum(parts) == pytest.approx(1e-6, rel=1e-12)
    assert all(part > 0 for part in parts)
    assert epsilon_of([(Release(found.multiplier), 100)], found.delta_of_accountant) <= 4.0


# --- the record of releases ---


def test_the_same_input_has_the_same_key_and_any_other_has_another(tmp_path: Path) -> None:
    record = ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    key = record.key_of(2, "rows", b"input")
    assert record.key_of(2, "rows", b"input") == key
    others = [record.key_of(2, "rows", b"other"), record.key_of(3, "rows", b"input")]
    others.append(ReleaseRecord(bytes([1]) * 32, tmp_path / "x", 3, b"terms")._derived("key", 2, "rows", b"input"))
    assert len({key, *others}) == 4
    assert record.releases == 3
    with pytest.raises(BudgetSpent, match="no room for round 4"):
        record.key_of(4, "rows", b"input")
    again = ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    assert again.key_of(2, "rows", b"input") == key
    assert again.releases == 3
    with pytest.raises(BudgetSpent, match="the privacy budget is spent"):
        ReleaseRecord(bytes(32), tmp_path, 2, b"terms")


def test_several_tables_of_one_round_are_one_release(tmp_path: Path) -> None:
    record = ReleaseRecord(bytes(32), tmp_path, 1, b"terms")
    record.key_of(2, "rows", b"a")
    record.key_of(2, "own/relation", b"b")
    assert record.releases == 1


def test_a_line_that_a_crash_cut_short_is_charged_once_as_a_release_of_unknown_kind(tmp_path: Path) -> None:
    ReleaseRecord(bytes(32), tmp_path, 3, b"terms").key_of(2, "rows", b"a")
    path = tmp_path / FILE
    first = path.read_bytes()
    path.write_bytes(first + b'{"round": 3, "pur\xff')
    record = ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    assert record.releases == 2
    assert path.read_bytes().startswith(first)
    record.key_of(3, "rows", b"a")
    assert ReleaseRecord(bytes(32), tmp_path, 3, b"terms").releases == 3
    with pytest.raises(BudgetSpent, match="no room for round 4"):
        ReleaseRecord(bytes(32), tmp_path, 3, b"terms").key_of(4, "rows", b"a")
    path.write_bytes(path.read_bytes() + b"{")
    with pytest.raises(BudgetSpent, match="the privacy budget is spent"):
        ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    assert ReleaseRecord(bytes(32), tmp_path, 4, b"terms").releases == 4


def test_a_whole_last_line_that_lacks_its_end_is_what_it_says(tmp_path: Path) -> None:
    ReleaseRecord(bytes(32), tmp_path, 2, b"terms").key_of(2, "rows", b"a")
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    record = ReleaseRecord(bytes(32), tmp_path, 2, b"terms")
    record.key_of(2, "rows", b"a")
    assert record.releases == 1
    record.key_of(3, "rows", b"a")
    assert ReleaseRecord(bytes(32), tmp_path, 2, b"terms").releases == 2


@pytest.mark.parametrize(
    "damage", [b'{"round": 3, "pur', b"", b"\0" * 40, b'{"round": "2", "purpose": "rows", "tag": "00"}', b"[" * 9999]
)
def test_any_other_damage_is_refused_in_one_line_and_changes_nothing(tmp_path: Path, damage: bytes) -> None:
    record = ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    record.key_of(2, "rows", b"a")
    record.key_of(3, "rows", b"a")
    path = tmp_path / FILE
    one, other = path.read_bytes().splitlines()
    for lines in ((one, damage, other, b""), (one, other, damage, b""), (damage, other)):
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(UserError, match=r"line \d is not of a record of releases.*begin a new run") as refused:
            ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == b"\n".join(lines)


def test_secrets_are_no_part_of_a_repr() -> None:
    assert repr(ReleaseRecord(b"secret" * 6, Path("nowhere"), 1, b"terms")) == "ReleaseRecord()"
    assert "key" not in repr(NoiseShares(1.0, 2, key_of=lambda number, purpose, content: b"key"))


def test_widths_of_models_decide_whether_all_rows_fit_one_block() -> None:
    assert RunConfig(strategy="all-rows", training=TrainingConfig(model="ComplEx")).strategy == "all-rows"
    with pytest.raises(UserError, match="RESCAL"):
        RunConfig(strategy="all-rows", training=TrainingConfig(model="RESCAL", dim=8))


def test_the_same_input_at_another_state_has_another_key_and_is_charged(tmp_path: Path) -> None:
    """Else a repeated round with one row changed would tell, by equal noise, that no triple touches that row."""
    record = ReleaseRecord(b"s" * 32, tmp_path, 2, b"terms")
    record.begin(b"one state")
    first = record.key_of(1, "rows", b"sums")
    assert record.key_of(1, "rows", b"sums") == first
    assert record.releases == 1
    record.begin(b"another")
    assert record.key_of(1, "rows", b"sums") != first
    assert record.releases == 2
    record.begin(b"a third")
    with pytest.raises(BudgetSpent):
        record.key_of(1, "rows", b"sums")
    record.begin(b"one state")
    assert record.key_of(1, "rows", b"sums") == first


def test_runs_that_share_a_secret_share_no_noise(tmp_path: Path) -> None:
    """Else sums that differ in every entry would tell for certain that a triple has come or gone between two runs."""
    records = [ReleaseRecord(bytes(32), tmp_path / name, 3, terms_of(name, "settings")) for name in ("one", "two")]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert records[0].key_of(2, "rows", b"sums") != records[1].key_of(2, "rows", b"sums")


@pytest.mark.parametrize("change", [{"epsilon": 16.0}, {"rounds": 9}, {"dp_clip": 0.4}, {"max_dropout": 0.0}])
def test_releases_under_other_settings_are_not_continued(tmp_path: Path, change: dict[str, Any]) -> None:
    begun, edited = (RunPlan(private_config(**one), 3).private for one in ({}, change))
    ReleaseRecord(bytes(32), tmp_path, 3, terms_of("run", begun)).key_of(2, "rows", b"sums")
    assert ReleaseRecord(bytes(32), tmp_path, 3, terms_of("run", begun)).releases == 1
    with pytest.raises(UserError, match="made under other privacy settings") as refused:
        ReleaseRecord(bytes(32), tmp_path, 3, terms_of("run", edited))
    assert "\n" not in str(refused.value)


def test_a_record_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="not a file"):
        ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(UserError, match="not a file"):
        ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
