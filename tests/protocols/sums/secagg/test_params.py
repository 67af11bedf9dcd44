"""The parameters of a sum against brute force: every corrupt set, every set of dropouts, every split by the server.

The reckoning here uses none of the module's formulas: it counts sets, or adds up exact fractions term by term.
"""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import pytest

from protocols.foundation.errors import ProtocolError
from protocols.sums.secagg.params import (
    ParametersRefused,
    Server,
    SumParameters,
    ThreatModel,
    complete_parameters,
    sparse_parameters,
)
from protocols.sums.secagg.vectors import parameters_for
from tests.support.threat_models import SMALL, accepted, declared, tail

# --- the declaration ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "n", "floor"),
    [
        *[(0.2, 5, 1), (0.2, 4, 0), (0.29, 100, 29), (0.57, 100, 57), (0.99, 100, 99), (0, 7, 0), (0.0, 7, 0)],
        *[(0.1, 10, 1), (0.1 + 0.2, 10, 3), (1 - 0.9, 10, 1), (1 / 3, 3, 1), (0.33, 3, 0), (0.34, 3, 1)],
    ],
)
def test_a_fraction_of_the_clients_is_rounded_down_from_the_number_that_was_meant(
    share: float, n: int, floor: int
) -> None:
    assert ThreatModel(share, 0).corrupt_of(n) == floor
    assert ThreatModel(0, share).dropouts_of(n) == floor


def test_every_whole_number_of_clients_can_be_declared() -> None:
    assert all(ThreatModel(m / n, 0).corrupt_of(n) == m for n in range(2, 300) for m in range(n))


@pytest.mark.parametrize("share", [-0.1, 1, 1.0, 1.5, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["corrupt", "dropout"])
def test_a_fraction_that_is_none_is_refused(name: str, share: float) -> None:
    with pytest.raises(ParametersRefused, match=f"{name} = {share} is no fraction of the clients"):
        ThreatModel(**{"corrupt": 0.1, "dropout": 0.1, name: share})


@pytest.mark.parametrize("bits", [0, -1, 257])
@pytest.mark.parametrize("name", ["security_bits", "correctness_bits"])
def test_nonsense_bits_are_refused(name: str, bits: int) -> None:
    with pytest.raises(ParametersRefused, match=f"{name} = {bits} lies outside"):
        ThreatModel(0.1, 0.1, **{name: bits})


def test_an_unknown_kind_of_server_is_refused() -> None:
    with pytest.raises(ParametersRefused, match="server = 'malicious' is neither of semi-honest, active"):
        ThreatModel(0.1, 0.1, "malicious")  # type: ignore[arg-type]


# --- a sum over some of the clients ---------------------------------------------------------------------------------


def rarely_more(clients: int, corrupt: int, drawn: int, bits: int) -> int:
    """The fewest corrupt ones that are exceeded in at most 2^-bits / (clients + 1) of all draws: a margin is taken."""
    draws = [sum(client < corrupt for client in chosen) for chosen in combinations(range(clients), drawn)]
    allowed = Fraction(1, (clients + 1) * 2**bits)
    return min(x for x in range(drawn + 1) if Fraction(sum(found > x for found in draws), len(draws)) <= allowed)


@pytest.mark.parametrize("bits", [1, 2, 4, 40])
@pytest.mark.parametrize("clients", range(1, 10))
def test_random_draws_have_more_corrupt_ones_than_reckoned_with_only_rarely(clients: int, bits: int) -> None:
    for corrupt, drawn in product(range(clients), range(1, clients + 1)):
        model = declared(clients, corrupt, 0, security=bits)
        expected = min(corrupt, rarely_more(clients, corrupt, drawn, bits))
        if expected >= drawn:
            with pytest.raises(ParametersRefused, match=f"a sum of {drawn} of {clients} clients may have corrupt"):
                model.among(drawn, clients)
        else:
            among = model.among(drawn, clients)
            assert among.corrupt_of(drawn) == expected
            # Nothing else of the declaration changes.
            assert dataclasses.replace(among, corrupt=model.corrupt) == model


@pytest.mark.parametrize("clients", range(1, 10))
def test_against_an_active_server_all_corrupt_clients_may_be_among_those_drawn(clients: int) -> None:
    for corrupt, drawn in product(range(clients), range(1, clients + 1)):
        model = declared(clients, corrupt, 0, "active")
        worst = max(sum(client < corrupt for client in chosen) for chosen in combinations(range(clients), drawn))
        if worst == drawn:
            with pytest.raises(ParametersRefused, match="corrupt participants only: declare less corruption or draw"):
                model.among(drawn, clients)
        else:
            assert model.among(drawn, clients).corrupt_of(drawn) == worst == min(corrupt, drawn)


@pytest.mark.parametrize("server", ["semi-honest", "active"])
def test_a_sum_over_everybody_has_the_declared_number_of_corrupt_clients(server: Server) -> None:
    for n in range(2, 60):
        for corrupt in range(n):
            assert declared(n, corrupt, 0, server).among(n, n).corrupt_of(n) == corrupt


def test_a_share_of_those_drawn_would_be_fewer_than_there_may_be() -> None:
    """Of 30 clients 6 may be corrupt. Five that are drawn may be among them, although a fifth of five is one."""
    for server in ("semi-honest", "active"):
        with pytest.raises(ParametersRefused, match="a sum of 5 of 30 clients may have corrupt participants only"):
            declared(30, 6, 0, server).among(5, 30)
    assert declared(30, 6, 0, "active").among(10, 30).corrupt_of(10) == 6
    assert complete_parameters(5, declared(30, 6, 0)).threshold == 5
    with pytest.raises(ParametersRefused):
        parameters_for(5, 30, declared(30, 6, 0), 2)


def test_random_draws_from_many_are_reckoned_with_better_than_the_worst_case() -> None:
    semi_honest, active = (ThreatModel(0.2, 0.1, server) for server in ("semi-honest", "active"))
    found = semi_honest.among(200, 1000).corrupt_of(200)
    assert 40 < found < 200
    assert 1001 * tail(1000, 200, 200, found + 1) <= Fraction(1, 2**40) < 1001 * tail(1000, 200, 200, found)
    with pytest.raises(ParametersRefused):
        active.among(200, 1000)


@pytest.mark.parametrize(("server", "chosen"), [("semi-honest", sparse_parameters), ("active", complete_parameters)])
def test_the_parameters_of_a_sum_count_the_corrupt_over_all_clients(
    server: Server, chosen: Callable[[int, ThreatModel, int], SumParameters]
) -> None:
    model = ThreatModel(0.1, 0.1, server)
    for participants, clients in ((20, 20), (20, 30), (60, 100), (100, 100)):
        expected = chosen(participants, model.among(participants, clients), 3)
        assert parameters_for(participants, clients, model, 3) == expected
    assert parameters_for(100, 100, model, 3).complete == (server == "active")


@pytest.mark.parametrize("n", [10, 40, 100])
def test_the_server_insists_on_as_many_as_the_declaration_leaves(n: int) -> None:
    for silent in (0, 1, n // 5):
        model = declared(n, 1, silent, security=10, correctness=5)
        for parameters in (complete_parameters(n, model), sparse_parameters(n, model)):
            assert parameters.least_present == n - silent
    assert SumParameters(4, 3, 2, 2).least_present == 0


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "model", "least", "reason"),
    [
        (0, ThreatModel(0, 0), 2, "a sum of 0 clients hides nothing: at least 2 are needed"),
        (1, ThreatModel(0, 0), 2, "a sum of 1 clients hides nothing: at least 2 are needed"),
        (5, ThreatModel(0, 0), 1, "min_survivors = 1 lies outside 2..5"),
        (5, ThreatModel(0, 0), 6, "min_survivors = 6 lies outside 2..5"),
        (
            5,
            ThreatModel(0.4, 0.4, "active"),
            2,
            "5 clients of which 2 may be corrupt and 2 may drop out cannot stand an active server: "
            "2t > 7 and t <= 3 contradict; declare at most 1 dropouts, or fewer corrupt",
        ),
        (
            5,
            ThreatModel(0.4, 0.4),
            2,
            "5 clients of which 2 may be corrupt and 2 may drop out may leave 1 honest survivors, and a sum over fewer "
            "than 2 hides nothing: declare less corruption or dropout, or sum over more clients",
        ),
        (
            5,
            ThreatModel(0, 0.4),
            4,
            "5 clients of which 0 may be corrupt and 2 may drop out may leave 3 survivors, fewer than "
            "min_survivors = 4: declare less dropout or lower min_survivors",
        ),
    ],
)
def test_a_refusal_names_the_figures_and_the_remedy(n: int, model: ThreatModel, least: int, reason: str) -> None:
    with pytest.raises(ParametersRefused) as caught:
        complete_parameters(n, model, least)
    assert str(caught.value) == reason
    assert isinstance(caught.value, ProtocolError)
    with pytest.raises(ParametersRefused) as caught:
        sparse_parameters(n, model, least)
    assert str(caught.value) == reason or model.server == "active"


@pytest.mark.parametrize("n", SMALL)
def test_the_remedy_against_an_active_server_works(n: int) -> None:
    for corrupt, silent in product(range(n - 1), range(n)):
        try:
            complete_parameters(n, declared(n, corrupt, silent, "active"))
        except ParametersRefused as refused:
            bearable = int(str(refused).split("declare at most ")[1].split()[0])
            assert silent > bearable
            assert accepted(n, declared(n, corrupt, bearable, "active")) is not None
            assert accepted(n, declared(n, corrupt, bearable + 1, "active")) is None


@pytest.mark.parametrize("n", [2, 5, 1000])
def test_a_sparse_graph_is_refused_against_an_active_server(n: int) -> None:
    with pytest.raises(ParametersRefused, match=r"sparse graph cannot stand an active server.*use the complete graph"):
        sparse_parameters(n, ThreatModel(0, 0, "active"))
