"""An auditor computes the sums of a run from its transcript, and they are those the server had."""

from pathlib import Path

import numpy as np
import pytest

from secure_kg.audit.view.opening import OpenedSum, Opening
from secure_kg.audit.view.read import open_run
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.messages import SharedRows
from secure_kg.federation.plan.row_sum import mean_rows
from secure_kg.federation.server import server
from secure_kg.runs.run_folder import read_json
from tests.support.audited_runs import audited, audited_config, edited, ids, observed, replacing, with_fields
from tests.support.dying_clients import VICTIM, dying_after
from tests.support.federation_in_threads import nations, run_federation

pytestmark = pytest.mark.long


def opened_sums(run: Path) -> list[OpenedSum]:
    opened = open_run(run)
    (recording,) = opened.recordings
    opening = Opening(opened.config, opened.clients)
    sums = [total for one in recording for total in opening.observe(one)]
    return [*sums, *opening.end()]


def test_every_sum_is_computed_again_and_is_what_the_server_went_on_with(secagg_run: Path) -> None:
    sums = {(total.round, total.purpose): total for total in opened_sums(secagg_run)}
    aligned = {(0, "union/0"), (0, "union vote")}
    assert set(sums) == aligned | {(1, "holders"), *((number, "rows") for number in (1, 2, 3))} | {
        (3, "valid"),
        (4, "test"),
    }
    assert not any(total.problem for total in sums.values())
    last = [one.message for one in observed(secagg_run) if isinstance(one.message, SharedRows)][-1]
    rows = sums[3, "rows"]
    assert rows.layout is not None
    assert rows.vector is not None
    total = rows.layout.decode(rows.vector)
    some = total.counts > 0
    np.testing.assert_array_equal(mean_rows(total)[some], last.rows[some])
    test = sums[4, "test"]
    assert test.layout is not None
    assert test.vector is not None
    assert (
        RankingMetrics.of(test.layout.decode(test.vector)).tail.metrics()["mrr"]
        == read_json(secagg_run / "summary.json")["mrr"]
    )


def test_a_secret_sum_is_opened_as_far_as_the_server_could_and_is_noise(secret_run: Path) -> None:
    rows = [total for total in opened_sums(secret_run) if total.purpose == "rows"]
    assert len(rows) == 3
    for total in rows:
        assert total.layout is None
        assert total.vector is not None
        assert not total.problem
        # Twenty of these would be zero in clear: rows that nobody shares, and high bytes of small numbers.
        assert np.count_nonzero(total.vector) == len(total.vector)


def test_a_plain_sum_is_the_sum_of_what_was_sent(plain_run: Path) -> None:
    sums = {(total.round, total.purpose): total for total in opened_sums(plain_run)}
    rows = sums[3, "rows"]
    assert rows.layout is not None
    assert rows.vector is not None
    assert rows.threshold == 0
    assert rows.layout.decode(rows.vector).counts.max() == 4


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_a_resumed_run_is_audited_over_all_its_sessions(tmp_path: Path, aggregation: str) -> None:
    shorter = audited_config(4, rounds=2, eval_every=2, checkpoint_every=2, aggregation=aggregation)
    longer = audited_config(4, rounds=4, eval_every=2, checkpoint_every=2, aggregation=aggregation)
    run = tmp_path / "run"
    run_federation(shorter, nations(4), run).done()
    run_federation(longer, nations(4), run, resume=True).done()
    found = audited(run)
    assert len(found.run.recordings) == 2
    assert ids(found, "high", "medium") == set()
    assert {total.round for total in found.sums.sums if total.purpose == "rows"} == {1, 2, 3, 4}


def test_an_active_setting_is_computed_again_with_its_signatures(tmp_path: Path) -> None:
    from protocols.session.identities import PublicIdentity, credentials, directory_text, new_identity, parse_directory
    from secure_kg.audit.audit import audit

    pairs = {number: new_identity() for number in range(1, 5)}
    directory = directory_text([PublicIdentity(number, pair.public) for number, pair in pairs.items()])
    config = audited_config(4, adversary="active", keys="keys")
    own = {number: credentials(pair.private_pem, directory, number) for number, pair in pairs.items()}
    run = tmp_path / "run"
    run_federation(config, nations(4), run, credentials=own).done()
    pinned = {client.number: bytes.fromhex(client.public) for client in parse_directory(directory)}
    found = audit(open_run(run), None, pinned)
    assert ids(found, "high", "medium") == set()
    assert not any(total.problem for total in found.sums.sums)
    (keys,) = (check for check in found.checks if check.id == "identity-keys")
    sums = len(found.sums.sums)
    assert f"{4 + 12 * sums} signatures checked" in keys.looked_at  # channels; keys, states, survivors of every sum
    assert "signatures-not-verified" in ids(audit(open_run(run)), "medium")
    swapped = {**pinned, 1: pinned[2], 2: pinned[1]}
    assert "signature-false" in ids(audit(open_run(run), None, swapped), "high")
    garbled = edited(
        run,
        tmp_path / "garbled",
        replacing(
            lambda one: one.kind in ("AdvertiseKeys", "SurvivorSignature") and one.peer == 2,
            lambda one: with_fields(one.message, signature=bytes(64)),
        ),
    )
    assert "signature-false" in ids(audit(open_run(garbled), None, pinned), "high")


@pytest.mark.parametrize("messages", [9, 11, 13, 14, 22], ids=str)
def test_a_run_in_which_a_client_dies_is_audited(
    tmp_path: Path, messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drops out in the middle of a sum has its mask key opened, and nothing else."""
    monkeypatch.setattr(server, "_SETUP_GRACE", 3.0)
    config = audited_config(4, rounds=2, eval_every=2, grace=1.0)
    run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(messages))
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert "sum-not-reproduced" not in ids(found)
    assert any(VICTIM not in total.contributors for total in found.sums.sums)
