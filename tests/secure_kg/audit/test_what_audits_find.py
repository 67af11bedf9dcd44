"""Secure runs have no findings of weight, plain ones have many, and each thing done wrong is found by its own check."""

import dataclasses
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from protocols.alignment.plain import ClearNames
from protocols.sums.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput, Survivors, UnmaskShares
from protocols.sums.totals import SumTotal
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import SharedRows
from tests.support.audited_runs import NET, audited, edited, ids, observed, recorded_run, replacing, with_fields

pytestmark = pytest.mark.long

PLAIN = {"clear-holders", "clear-names", "clear-rows", "clear-test-results", "clear-validation-results"}


def is_upload(one: Observation, party: int, number: int, purpose: str = "rows") -> bool:
    return isinstance(one.message, MaskedInput) and (one.peer, one.round, one.purpose) == (party, number, purpose)


def upload(run: Path, party: int, number: int, purpose: str = "rows") -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    (found,) = (one.message for one in observed(run) if is_upload(one, party, number, purpose))
    assert isinstance(found, MaskedInput)
    return found.vector


@pytest.mark.parametrize("name", ["secagg_run", "secret_run"])
def test_a_secure_run_has_no_finding_of_weight(name: str, request: pytest.FixtureRequest) -> None:
    found = audited(request.getfixturevalue(name))
    assert ids(found, "high", "medium") == set()
    assert found.exit_code == 0
    for check in found.checks:
        expected = "passed"
        if name == "secret_run" and check.id in ("few-holders", "differences-of-sums", "verdicts"):
            expected = "nothing to check"  # the server reads no sum
        assert check.status == expected, check


@pytest.mark.parametrize("name", ["secagg_run", "plain_run", "two_sessions"])
def test_one_thing_is_not_told_as_several(name: str, request: pytest.FixtureRequest) -> None:
    found = audited(request.getfixturevalue(name))
    told = [check.looked_at for check in found.checks]
    told += [line for one in found.findings for line in (one.title, *one.evidence)]
    wrong = re.compile(r"(?<![\d.,])1 (?!has|was|is)\w+s\b|clients \d+(?!,|\d| to| and)|rounds (\d+) to \1\b")
    assert [line for line in told if wrong.search(line)] == []


def test_a_plain_run_shows_everything(plain_run: Path) -> None:
    found = audited(plain_run)
    assert ids(found, "high") == PLAIN
    assert found.exit_code == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"reveal_names": True},
        {"aggregation": "secret", "min_holders": 3},
        {"strategy": "local"},
        {"strategy": "fede", "ring_bits": 64, "clip": 100.0},
    ],
    ids=str,
)
def test_every_secure_setting_passes(tmp_path: Path, changes: dict[str, object]) -> None:
    found = audited(recorded_run(tmp_path / "run", **changes))
    assert ids(found, "high", "medium") == set()
    assert not any(total.problem for total in found.sums.sums)


def test_private_alignment_under_plain_sums_hides_names_only(tmp_path: Path) -> None:
    found = audited(recorded_run(tmp_path / "run", aggregation="plain"))
    assert ids(found, "high") == PLAIN - {"clear-names"}


def test_drawn_clients_make_differences(tmp_path: Path) -> None:
    found = audited(recorded_run(tmp_path / "run", clients=5, client_fraction=0.8, max_corrupt=0.0, rounds=4))
    assert "differences-isolate-rows" in ids(found, "medium")
    assert ids(found, "high") == set()


def test_rows_of_single_holders_are_found(tmp_path: Path) -> None:
    found = audited(recorded_run(tmp_path / "run", clients=3, min_holders=1))
    assert "single-holder-rows" in ids(found, "high")


# --- done wrong on purpose ----------------------------------------------------------------------------------------


def test_a_mask_used_twice_is_found(secagg_run: Path, tmp_path: Path) -> None:
    first = upload(secagg_run, 1, 2)
    changed = first + np.random.default_rng(0).integers(0, 1 << 12, len(first)).astype(np.uint32)
    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: is_upload(one, 1, 3), lambda one: with_fields(one.message, vector=changed)),
    )
    assert "mask-reused" in ids(audited(run), "high")


def test_an_upload_in_clear_is_found_even_if_it_is_called_masked(secagg_run: Path, tmp_path: Path) -> None:
    length = len(upload(secagg_run, 2, 3))
    small = np.random.default_rng(0).normal(0, 1 << 20, length).astype(np.int64).astype(np.uint32)
    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: is_upload(one, 2, 3), lambda one: with_fields(one.message, vector=small)),
    )
    assert "masked-values-not-uniform" in ids(audited(run), "high")


def test_clients_under_one_mask_are_found(secagg_run: Path, tmp_path: Path) -> None:
    other = upload(secagg_run, 1, 3)
    near = other + np.random.default_rng(0).integers(0, 1 << 12, len(other)).astype(np.uint32)
    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: is_upload(one, 2, 3), lambda one: with_fields(one.message, vector=near)),
    )
    assert "masked-values-dependent" in ids(audited(run), "high")


def test_both_shares_of_a_client_are_found(secagg_run: Path, tmp_path: Path) -> None:
    def split(one: Observation) -> object:
        assert isinstance(one.message, UnmaskShares)
        seeds = dict(one.message.seed_shares)
        return with_fields(one.message, mask_key_shares={2: seeds.pop(2)}, seed_shares=seeds)

    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: isinstance(one.message, UnmaskShares) and one.peer == 3 and one.round == 2, split),
    )
    found = audited(run)
    assert "both-shares" in ids(found, "high")
    assert "sum-not-reproduced" in ids(found, "high")


@pytest.mark.parametrize("opened", [True, False])
def test_a_vector_after_its_key_was_opened_is_found(secagg_run: Path, tmp_path: Path, opened: bool) -> None:
    """Client 2 is called dropped in round 2, and its vector comes afterwards."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        late: list[Observation] = []
        for one in observations:
            message = one.message
            if is_upload(one, 2, 2):
                late.append(one)
                continue
            if isinstance(message, Survivors) and (one.round, one.purpose) == (2, "rows"):
                one = dataclasses.replace(one, message=with_fields(message, dropped=[2]))
            if isinstance(message, UnmaskShares) and (one.round, one.purpose) == (2, "rows"):
                yield from late
                late.clear()
                if not opened:
                    seeds = {party: share for party, share in message.seed_shares.items() if party != 2}
                    one = dataclasses.replace(one, message=with_fields(message, seed_shares=seeds))
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert ("vector-after-opening" in ids(found, "high")) == opened
    assert ("late-vector" in ids(found, "info")) == (not opened)


def test_a_replaced_key_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def replace(one: Observation) -> object:
        assert isinstance(one.message, KeyDirectory)
        return with_fields(one.message, mask_keys={**one.message.mask_keys, 1: bytes(32)})

    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: isinstance(one.message, KeyDirectory) and one.peer == 2 and one.round == 1, replace),
    )
    assert "key-replaced" in ids(audited(run), "high")


def test_a_second_key_of_a_client_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield one
            if isinstance(one.message, AdvertiseKeys) and (one.peer, one.round) == (2, 1):
                yield dataclasses.replace(one, message=with_fields(one.message, mask_key=bytes(32)))

    assert "key-changed" in ids(audited(edited(secagg_run, tmp_path / "run", edit)), "high")


def test_a_key_used_in_two_sums_is_found(secagg_run: Path, tmp_path: Path) -> None:
    (key,) = (
        one.message.mask_key
        for one in observed(secagg_run)
        if isinstance(one.message, AdvertiseKeys) and (one.peer, one.round, one.purpose) == (1, 1, "rows")
    )
    again = replacing(
        lambda one: isinstance(one.message, AdvertiseKeys) and (one.peer, one.round, one.purpose) == (1, 2, "rows"),
        lambda one: with_fields(one.message, mask_key=key),
    )
    assert "secret-reused" in ids(audited(edited(secagg_run, tmp_path / "run", again)), "high")


def test_a_model_of_ones_own_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def change(one: Observation) -> object:
        assert isinstance(one.message, SharedRows)
        return with_fields(one.message, rows=one.message.rows + np.float32(0.5))

    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: isinstance(one.message, SharedRows) and one.peer == 4 and one.round == 2, change),
    )
    assert "different-global-models" in ids(audited(run), "high")


def test_names_in_clear_where_none_are_due_are_found(secagg_run: Path, tmp_path: Path) -> None:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield one
            if one.kind == "Aligned":
                yield dataclasses.replace(one, message=ClearNames([f"name {one.peer}"]))

    found = ids(audited(edited(secagg_run, tmp_path / "run", edit)), "high")
    assert {"undeclared-message", "clear-names"} <= found


def test_uploads_of_different_sizes_are_found(secagg_run: Path, tmp_path: Path) -> None:
    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(
            lambda one: is_upload(one, 3, 2),
            lambda one: with_fields(one.message, vector=one.message.vector[:-7]),  # type: ignore[attr-defined]
        ),
    )
    assert "sizes-tell-holdings" in ids(audited(run), "high")


def test_a_wrong_upload_is_no_sum_that_follows(secagg_run: Path, tmp_path: Path) -> None:
    """Noise in place of an upload cannot be told from it, but no sum comes of it."""
    noise = np.frombuffer(np.random.default_rng(1).bytes(4 * len(upload(secagg_run, 3, 2))), dtype=np.uint32)
    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: is_upload(one, 3, 2), lambda one: with_fields(one.message, vector=noise)),
    )
    found = audited(run)
    assert ids(found, "high", "medium") == {"sum-not-reproduced", "false-totals", NET}


@pytest.mark.parametrize("said_newest", [0, 99])
def test_a_model_of_ones_own_is_found_whatever_round_it_claims(
    secagg_run: Path, tmp_path: Path, said_newest: int
) -> None:
    def change(one: Observation) -> object:
        assert isinstance(one.message, SharedRows)
        averaged = one.message.averaged.copy()
        averaged[0] += said_newest
        return with_fields(one.message, rows=one.message.rows + np.float32(0.5), averaged=averaged)

    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: isinstance(one.message, SharedRows) and one.peer == 4 and one.round == 2, change),
    )
    assert {"different-global-models", "false-totals"} & ids(audited(run), "high")


def test_a_false_model_for_everybody_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def change(one: Observation) -> object:
        assert isinstance(one.message, SharedRows)
        return with_fields(one.message, rows=one.message.rows + np.float32(0.5))

    run = edited(
        secagg_run,
        tmp_path / "run",
        replacing(lambda one: isinstance(one.message, SharedRows) and one.round == 2, change),
    )
    assert "false-totals" in ids(audited(run), "high")


def test_a_false_total_under_secret_sums_is_found(secret_run: Path, tmp_path: Path) -> None:
    def change(one: Observation) -> object:
        assert isinstance(one.message, SumTotal)
        return with_fields(one.message, vector=one.message.vector + np.uint32(1))

    run = edited(
        secret_run,
        tmp_path / "run",
        replacing(lambda one: isinstance(one.message, SumTotal) and one.message.of_round == 2, change),
    )
    assert "false-totals" in ids(audited(run), "high")


def test_names_that_the_server_was_told_are_in_the_ledger(tmp_path: Path) -> None:
    found = audited(recorded_run(tmp_path / "run", reveal_names=True))
    assert ids(found, "high", "medium") == set()
    (names,) = (one for one in found.ledger.entries if one.purpose == "union names" and one.direction == "computed")
    assert names.declared.field_class == "aggregate"
    told = {total.purpose: total.read_by_server for total in found.sums.record()}
    assert told["union/0"]
    assert told["union names"]
    assert not told["holders"]


def test_settings_other_than_those_agreed_on_are_found(secagg_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(secagg_run, tmp_path / "run"))
    text = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(f"min_holders = 1\n{text}", encoding="utf-8")
    assert "settings-differ" in ids(audited(run), "high")


@pytest.mark.parametrize("kept", [0, 4, 40, 120])
def test_a_shortened_record_is_not_a_clean_one(secagg_run: Path, tmp_path: Path, kept: int) -> None:
    """Whoever rewrites the chain can cut a transcript anywhere; the run's own summary speaks against it."""
    run = edited(secagg_run, tmp_path / "run", lambda observations: list(observations)[:kept])
    shutil.copy(secagg_run / "summary.json", run)
    found = ids(audited(run), "high")
    assert "record-incomplete" in found
    assert ("nothing-recorded" in found) == (kept < 100)


def test_a_round_taken_out_is_found_even_without_a_summary(secagg_run: Path, tmp_path: Path) -> None:
    run = edited(secagg_run, tmp_path / "run", lambda observations: [one for one in observations if one.round != 2])
    assert "record-incomplete" in ids(audited(run), "high")


def test_a_stranger_is_found(secagg_run: Path, tmp_path: Path) -> None:
    run = edited(
        secagg_run,
        tmp_path / "run",
        lambda observations: [
            *observations,
            dataclasses.replace(next(one for one in observations if one.kind == "Ready"), peer=99),
        ],
    )
    assert "strange-party" in ids(audited(run), "high")
