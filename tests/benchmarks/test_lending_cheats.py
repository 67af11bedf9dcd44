"""Tables that are lent against the protocol, or that no mean could be: whoever gets one, or is asked for one, stops."""

from collections.abc import Collection
from pathlib import Path

import pytest

from benchmarks.cheating.lending import OTHERS, TARGET, Lends, LendsToAll, colluder_lends, secret_config
from benchmarks.cheating.spoils import said
from benchmarks.cheating.stage import COLLUDER, VICTIM, Stage, stage_config
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.federation.plan.messages import LendTable
from secure_kg.federation.server.server import FederationServer

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("value", "averaged", "reason"),
    [
        (1.0, TARGET + 1, f"means of round {TARGET + 1} in round {TARGET}"),
        (1.0, 1, "changes rows that it does not call averaged"),
        (1.0, 0, "goes back to earlier means"),
        (16.5, TARGET - 1, "values that no mean of clipped rows has"),
        (float("nan"), TARGET - 1, "not finite"),
    ],
    ids=["of a later round", "of the same round", "of no round", "beyond the clip", "not a number"],
)
def test_a_lent_table_that_does_not_follow_is_refused(tmp_path: Path, value: float, averaged: int, reason: str) -> None:
    stage = Stage(tmp_path, secret_config())
    with colluder_lends(value, averaged):
        stage.perform(Lends(LendsToAll))
    refused = {number: told for number, told in stage.refused.items() if reason in told}
    assert refused
    assert refused.keys() <= set(OTHERS)
    given = {(one.round, one.purpose) for one in said(stage.last, MaskedInput, sender=VICTIM)}
    assert (TARGET, "rows") not in given  # it may have trained by then


class LendsOnce(FederationServer):
    """Asks for a table where it can read sums itself."""

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        super()._bring(parties, round_id)
        if round_id == TARGET:
            self._people.tell({PartyId(COLLUDER)}, LendTable(VICTIM))


def test_a_loan_under_sums_that_the_server_reads_is_refused_and_found(tmp_path: Path) -> None:
    stage = Stage(tmp_path, stage_config(rounds=TARGET))
    stage.perform(Lends(LendsOnce))
    assert "asks for the table for client" in stage.refused[COLLUDER]
    found = audit(open_run(stage.run), stage.run / "clients", stage.directory)
    assert {"undeclared-message", "lent-without-need"} <= {one.id for one in found.findings if one.severity == "high"}
