"""A union in one process: the same result as in a conversation, costs for every part, and no wrong result unnoticed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from protocols.alignment.psu import simulation as simulation_module
from protocols.alignment.psu.attempts import Attempt, LookedUp
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.simulation import CLIENT_PARTS, SERVER_PARTS, UnionCost, simulate_union
from protocols.foundation.errors import PeerMisbehaved, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step

MODEL = ThreatModel(0.2, 0.2)
NAMES = [f"name {number}" for number in range(600)]
SETS = {PartyId(party): NAMES[: 100 * party] for party in range(1, 6)}


def test_the_union_and_its_costs() -> None:
    cost = simulate_union(SETS, 500, model=MODEL)
    assert (cost.union, cost.bound, cost.survivors) == (500, 500, frozenset(SETS))
    assert tuple(cost.client_parts) == CLIENT_PARTS
    assert tuple(cost.server_parts) == SERVER_PARTS
    assert min(*cost.client_parts.values(), *cost.server_parts.values()) > 0
    assert cost.client_seconds == pytest.approx(sum(cost.client_parts.values()))
    assert cost.server_seconds == pytest.approx(sum(cost.server_parts.values()))
    layout = TableLayout.for_bound(500)
    assert cost.client_bytes_up > cost.attempts * 8 * layout.entries
    assert cost.client_bytes_down > cost.places_bytes > 4 * layout.cells


def test_names_that_stand_twice() -> None:
    sets = {PartyId(1): ["a", "b", "a"], PartyId(2): ["b", "b", "c"], PartyId(3): []}
    assert simulate_union(sets, 3, model=ThreatModel(0.0, 0.0)).union == 3


@pytest.mark.parametrize("step", [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING])
def test_dropouts(step: Step) -> None:
    """The last client alone has the last hundred names."""
    cost = simulate_union(SETS, 500, model=MODEL, dropped={step: {PartyId(5)}})
    stays = step is Step.UNMASKING
    assert cost.union == (500 if stays else 400)
    assert cost.survivors == frozenset(SETS) - (set() if stays else {5})


def test_too_many_dropouts() -> None:
    with pytest.raises(SumAbandoned):
        simulate_union(SETS, 500, model=MODEL, dropped={Step.MASKED_INPUT: {PartyId(4), PartyId(5)}})


def test_more_attempts_cost_more() -> None:
    once, often = (simulate_union(SETS, bound, model=MODEL) for bound in (500, 20))
    assert often.union == once.union == 500
    assert (once.attempts, often.attempts) == (1, 3)  # the tables for 20 and 80 names have 384 and 561 cells
    assert often.client_bytes_up > 1.1 * once.client_bytes_up


def test_attempts_are_bounded() -> None:
    with pytest.raises(ProtocolError, match="3 tables could not be read"):
        simulate_union(SETS, 1, model=MODEL)


def test_nobody_has_any_name() -> None:
    with pytest.raises(PeerMisbehaved, match="no client has any name"):
        simulate_union({PartyId(1): [], PartyId(2): []}, 10, model=ThreatModel(0.0, 0.0))


def test_clients_are_numbered_from_one() -> None:
    with pytest.raises(ValueError, match="numbered from 1"):
        simulate_union({PartyId(0): ["a"], PartyId(1): ["b"]}, 10, model=MODEL)


# --- a wrong result is noticed --------------------------------------------------------------------------------------


def simulate_with(positions: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> UnionCost:
    monkeypatch.setattr(Attempt, "look_up", positions)
    return simulate_union(SETS, 500, model=MODEL)


def test_clients_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Attempt.look_up

    def turned(*arguments: Any) -> Any:
        found = real(*arguments).positions
        return LookedUp(replace(found, own=np.roll(found.own, 1)))

    with pytest.raises(AssertionError, match="client 2 has other positions"):
        simulate_with(turned, monkeypatch)


def test_two_names_in_one_position(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Attempt.look_up

    def halved(*arguments: Any) -> Any:
        found = real(*arguments).positions
        return LookedUp(replace(found, own=found.own // 2))

    with pytest.raises(AssertionError, match="do not fill 500 positions one to one"):
        simulate_with(halved, monkeypatch)


def test_a_name_that_is_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    real = simulation_module.write
    monkeypatch.setattr(simulation_module, "write", lambda tags, layout: real(tags[tags[:, 0] != tags[0, 0]], layout))
    with pytest.raises((AssertionError, PeerMisbehaved)):
        simulate_union(SETS, 500, model=MODEL)
