"""Members whose shares do not open, in whole federations: the others go on, and the record says who refused whom."""

from pathlib import Path
from typing import Any, Final

import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Conversation
from protocols.sums.secagg.messages import ShareKeys
from protocols.sums.secagg.refusals import MOST_IN_A_ROW
from secure_kg.federation.server.disputes import AWAY
from secure_kg.federation.server.gathering import IN_DISPUTE
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

pytestmark = pytest.mark.long

CHEAT: Final = 2


def run_with_nonsense(
    monkeypatch: pytest.MonkeyPatch, path: Path, for_whom: set[int], clients: int = 4, **changes: Any
) -> Run:
    """What client 2 seals for some in the sums of rows from round 2 on does not open."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        cheats = self.transport.party == CHEAT and round_id >= 2
        if cheats and isinstance(message, ShareKeys) and message.purpose == "rows":
            sealed = {
                peer: bytes([one[0] ^ 1]) + one[1:] if peer in for_whom else one for peer, one in message.sealed.items()
            }
            message = ShareKeys(message.purpose, sealed, message.seed_commitment, message.state, message.signature)
        honest(self, to, message, round_id)

    monkeypatch.setattr(Conversation, "send", send)
    return run_federation(small_config(**changes), nations(clients), path)


def test_a_member_that_seals_nonsense_for_all_costs_two_sums_and_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run_with_nonsense(monkeypatch, tmp_path / "run", {1, 3, 4}, rounds=8).done()
    lost = [one for one in outcome.abandoned_sums if one.purpose == "rows"]
    assert 1 <= len(lost) <= 2
    assert all("the shares of client 2 cannot be opened" in one.reason for one in lost)
    at_the_end = [(one.client, one.step) for one in outcome.dropouts if one.returned is None]
    assert at_the_end == [(CHEAT, IN_DISPUTE)]
    assert outcome.test is not None
    assert outcome.test_clients == 3


def test_one_that_cheats_a_single_other_is_left_out_in_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = 2 + AWAY + 6
    outcome = run_with_nonsense(monkeypatch, tmp_path / "run", {3}, rounds=rounds, eval_every=rounds).done()
    left_out = [(one.client, one.returned is not None) for one in outcome.dropouts]
    assert left_out == [(3, True), (CHEAT, False)]
    assert sum(one.purpose == "rows" for one in outcome.abandoned_sums) == 2


def test_where_nobody_can_be_left_out_a_client_ends_its_part_in_a_line_that_names_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with_nonsense(monkeypatch, tmp_path / "run", {1}, clients=2, rounds=3 * MOST_IN_A_ROW)
    assert run.outcome is None
    assert f"({MOST_IN_A_ROW} in a row)" in str(run.client_errors[1])
    assert "client 2" in str(run.client_errors[1])
