"""The complete graph and the sparse graph against brute force: every corrupt set, every set of dropouts, every split.

The reckoning here uses none of the module's formulas: it counts sets, or adds up exact fractions term by term.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import pytest

from protocols.sums.secagg.params import (
    ParametersRefused,
    Server,
    SumParameters,
    ThreatModel,
    _Estimate,
    _out_of_reach,
    complete_parameters,
    sparse_parameters,
)
from tests.support.threat_models import SMALL, accepted, declared, tail


def subsets(n: int, largest: int) -> Iterator[frozenset[int]]:
    for size in range(largest + 1):
        yield from map(frozenset, combinations(range(n), size))


# --- the complete graph, by enumeration -----------------------------------------------------------------------------


@cache
def reach_of_an_active_server(n: int, corrupt: int) -> frozenset[tuple[int, int]]:
    """What it can collect of one honest client: pairs (shares of its seed, shares of its mask key), over all corrupt
    sets, all honest victims and all ways to tell each other honest client that the victim survived or not."""
    reach = set()
    for bad in map(frozenset, combinations(range(n), corrupt)):
        honest = [client for client in range(n) if client not in bad]
        for victim in honest:
            for told in product([True, False], repeat=len(honest)):
                survived = dict(zip(honest, told, strict=True))
                if survived[victim]:  # it knows better, and gives no share of its own mask key
                    seed = sum(survived.values()) + corrupt
                    reach.add((seed, n - corrupt - sum(survived.values()) + corrupt))
    return frozenset(reach)


def stands_active_server(n: int, corrupt: int, threshold: int) -> bool:
    return not any(seed >= threshold and key >= threshold for seed, key in reach_of_an_active_server(n, corrupt))


@cache
def fewest_honest_survivors(n: int, corrupt: int, silent: int) -> int:
    return min(
        n - len(bad | gone)
        for bad in subsets(n, corrupt)
        for gone in subsets(n, silent)
        if len(bad) == corrupt and len(gone) == silent
    )


@cache
def corrupt_shares_open_nothing(n: int, corrupt: int, threshold: int) -> bool:
    return all(len(bad - {u}) < threshold for bad in subsets(n, corrupt) for u in range(n) if u not in bad)


@cache
def every_secret_opens(n: int, silent: int, threshold: int) -> bool:
    """Whoever is silent: seeds and mask keys of the silent from the others, seeds of survivors from all survivors."""
    everyone = frozenset(range(n))
    return all(
        len((everyone - gone) - {u} if u in gone else everyone - gone) >= threshold
        for gone in subsets(n, silent)
        for u in range(n)
    )


def good_thresholds(n: int, corrupt: int, silent: int, server: Server) -> list[int]:
    return [
        t
        for t in range(2, n + 1)
        if corrupt_shares_open_nothing(n, corrupt, t)
        and every_secret_opens(n, silent, t)
        and (server == "semi-honest" or stands_active_server(n, corrupt, t))
    ]


@pytest.mark.parametrize("server", ["semi-honest", "active"])
@pytest.mark.parametrize("n", SMALL)
def test_the_complete_graph_has_the_largest_threshold_that_enumeration_allows(n: int, server: Server) -> None:
    outcomes = set()
    for corrupt, silent in product(range(n), repeat=2):
        parameters = accepted(n, declared(n, corrupt, silent, server))
        good = good_thresholds(n, corrupt, silent, server)
        possible = bool(good) and fewest_honest_survivors(n, corrupt, silent) >= 2
        assert (parameters is not None) == possible, (corrupt, silent)
        outcomes.add(possible)
        if parameters is not None:
            assert parameters == SumParameters(n, n - 1, max(good), parameters.min_survivors, n - silent)
            assert parameters.complete
            # Whatever survivors it answers for, two of them are honest; and nobody refuses a sum as declared.
            assert corrupt + 2 <= parameters.min_survivors <= n - silent
            assert parameters.min_survivors >= parameters.threshold
    assert outcomes == {True, False}


@pytest.mark.parametrize("n", SMALL)
def test_half_of_the_honest_against_the_other_half_is_the_best_attack(n: int) -> None:
    """The attack exists up to the threshold 2t = n + c and no further."""
    for corrupt, threshold in product(range(n - 1), range(1, n + 1)):
        assert stands_active_server(n, corrupt, threshold) == (2 * threshold > n + corrupt), (corrupt, threshold)


def test_some_declarations_stand_a_semi_honest_server_only() -> None:
    assert complete_parameters(4, declared(4, 0, 2)).threshold == 2
    assert not stands_active_server(4, 0, 2)
    assert accepted(4, declared(4, 0, 2, "active")) is None


def fewest_in_a_forged_sum(n: int, parameters: SumParameters) -> int:
    """No corrupt clients, and each honest one is told a set of survivors of its own: how few the server can add up.

    A client is in the sum if its seed opens and out of it if its mask key does; all must be the one or the other.
    """
    least = parameters.min_survivors
    tellable = [
        [frozenset(range(n)) - gone for gone in subsets(n, n - least) if client not in gone] for client in range(n)
    ]
    fewest = n
    for told in product(*tellable):
        votes = [sum(client in survivors for survivors in told) for client in range(n)]
        if all(max(ayes, n - ayes) >= parameters.threshold for ayes in votes):
            fewest = min(fewest, sum(ayes >= parameters.threshold for ayes in votes))
    return fewest


@pytest.mark.long
@pytest.mark.parametrize(("n", "silent", "fewest"), [(3, 1, 2), (4, 1, 3), (5, 1, 4), (5, 2, 2)])
def test_without_agreement_on_the_survivors_an_active_server_still_needs_two_in_the_sum(
    n: int, silent: int, fewest: int
) -> None:
    """But `min_survivors` it can undercut: of five clients that answer for three, it can get the sum of two."""
    parameters = complete_parameters(n, declared(n, 0, silent, "active"))
    assert fewest_in_a_forged_sum(n, parameters) == fewest >= 2


def test_two_clients_have_no_slack() -> None:
    for server in ("semi-honest", "active"):
        assert complete_parameters(2, ThreatModel(0.4, 0.4, server)) == SumParameters(2, 1, 2, 2, 2)
        assert accepted(2, ThreatModel(0.5, 0, server)) is None
        assert accepted(2, ThreatModel(0, 0.5, server)) is None


def test_min_survivors_is_met_or_refused() -> None:
    model = declared(6, 1, 2)
    assert [accepted(6, model, least) is not None for least in range(2, 7)] == [True, True, True, False, False]
    assert complete_parameters(6, model, 4).min_survivors == 4


# --- the sparse graph -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", range(1, 8))
def test_the_tails_are_those_of_enumeration(total: int) -> None:
    for marked, drawn in product(range(total + 1), range(1, total + 1)):
        draws = [sum(client < marked for client in drawn_ones) for drawn_ones in combinations(range(total), drawn)]
        for least in range(drawn + 2):
            assert tail(total, marked, drawn, least) == Fraction(sum(x >= least for x in draws), len(draws))


@pytest.mark.parametrize("n", [2, 3, 6, 9, 25])
def test_out_of_reach_is_exact(n: int) -> None:
    estimate = _Estimate(n)
    for marked, drawn, bits in product(range(n), range(1, n), (1, 3, 10, 40)):
        found = _out_of_reach(n, marked, drawn, bits)
        assert n * tail(n - 1, marked, drawn, found) <= Fraction(1, 2**bits)
        assert n * tail(n - 1, marked, drawn, found - 1) > Fraction(1, 2**bits)
        assert estimate(n, marked, drawn, bits) <= found


def test_out_of_reach_by_hand() -> None:
    """Two marked of the others, two drawn: n P[X = 2] is 5/6 for five clients, 10/36 for ten."""
    assert [_out_of_reach(5, 2, 2, 1), _out_of_reach(10, 2, 2, 1), _out_of_reach(10, 2, 2, 2)] == [3, 2, 3]


def conditions(n: int, corrupt: int, silent: int, k: int, t: int, least: int, security: int, correctness: int) -> bool:
    """(i) to (iii) of the module, from fractions."""
    private = n * tail(n - 1, corrupt, k, t) <= Fraction(1, 2**security)
    row = math.prod((Fraction(corrupt + silent - i, n - i) for i in range(k // 2)), start=Fraction(1))
    connected = n * row <= Fraction(1, 2**security)
    answers = n * tail(n - 1, silent, k, k + 2 - max(t, least)) <= Fraction(1, 2**correctness)
    opens = not silent or n * tail(n - 1, silent - 1, k, k + 1 - t) <= Fraction(1, 2**correctness)
    return private and connected and answers and opens


@pytest.mark.parametrize(
    ("n", "corrupt", "silent", "least", "security", "correctness"),
    [(n, c, d, 2, s, e) for n in (6, 9, 12) for c in range(4) for d in range(3) for s, e in ((1, 1), (4, 2), (40, 30))]
    + [(60, 6, 6, least, 40, 30) for least in (2, 12, 20, 28, 40)]
    # The survivors asked for exceed the threshold; a threshold of 1 would do.
    + [(20, 0, 3, 3, 1, 1), (20, 0, 5, 5, 4, 2), (20, 0, 6, 2, 1, 10), (30, 0, 9, 2, 1, 10)]
    + [(61, 0, 6, 2, 40, 30), (61, 6, 0, 2, 40, 30), (61, 0, 0, 2, 40, 30), (61, 20, 12, 2, 20, 10)]
    + [(100, 20, 10, 2, 40, 30), (100, 33, 10, 2, 40, 30), (101, 30, 30, 2, 10, 10), (200, 40, 20, 2, 40, 30)],
)
def test_the_sparse_graph_has_the_smallest_degree_and_the_largest_threshold(
    n: int, corrupt: int, silent: int, least: int, security: int, correctness: int
) -> None:
    model = declared(n, corrupt, silent, "semi-honest", security, correctness)
    expected = accepted(n, model, least)
    if expected is None:
        with pytest.raises(ParametersRefused):
            sparse_parameters(n, model, least)
        return
    for k in range(2, n - 1, 2):
        fitting = [t for t in range(2, k + 2) if conditions(n, corrupt, silent, k, t, least, security, correctness)]
        if fitting:
            expected = SumParameters(n, k, max(fitting), max(*fitting, least), n - silent)
            break
    assert sparse_parameters(n, model, least) == expected


def holds_by_enumeration(n: int, corrupt: int, silent: int, chosen: SumParameters) -> tuple[Fraction, ...]:
    """Fractions of all placings of corrupt and dropouts on the ring in which secrets leak, in which the honest
    survivors are not connected, and in which the sum fails."""
    half = chosen.degree // 2
    around = [frozenset((u + s) % n for s in range(-half, half + 1) if s) for u in range(n)]
    if chosen.complete:
        around = [frozenset(range(n)) - {u} for u in range(n)]
    everyone = frozenset(range(n))
    placings = leaks = cuts = failures = 0
    for bad in map(frozenset, combinations(range(n), corrupt)):
        leak = any(len(around[u] & bad) >= chosen.threshold for u in everyone - bad)
        for gone in map(frozenset, combinations(range(n), silent)):
            placings += 1
            leaks += leak
            left = everyone - bad - gone
            seen, edge = set(), {min(left)}
            while edge:
                seen |= edge
                edge = {v for u in edge for v in around[u] & left} - seen
            cuts += seen != left
            failures += any(
                len(around[u] - gone) < chosen.threshold
                if u in gone
                else len(around[u] - gone) + 1 < chosen.min_survivors
                for u in everyone
            )
    return tuple(Fraction(bad_ones, placings) for bad_ones in (leaks, cuts, failures))


@pytest.mark.parametrize(
    ("n", "corrupt", "silent", "bits"),
    [
        (9, 1, 1, 1),
        (9, 2, 1, 1),
        (10, 1, 2, 1),
        (11, 2, 2, 1),
        (12, 2, 1, 3),
        (12, 2, 2, 2),
        (12, 0, 3, 1),
        (13, 3, 0, 2),
    ],
)
def test_a_sparse_graph_keeps_its_word_over_all_placings(n: int, corrupt: int, silent: int, bits: int) -> None:
    chosen = sparse_parameters(n, declared(n, corrupt, silent, "semi-honest", bits, bits))
    assert not chosen.complete
    assert max(holds_by_enumeration(n, corrupt, silent, chosen)) <= Fraction(1, 2**bits)


def test_the_enumeration_sees_broken_parameters() -> None:
    assert holds_by_enumeration(9, 2, 1, SumParameters(9, 2, 2, 2))[0] > 0
    assert holds_by_enumeration(9, 2, 1, SumParameters(9, 2, 2, 2))[1] > 0
    assert holds_by_enumeration(9, 2, 1, SumParameters(9, 4, 5, 5))[2] == 1


def test_more_corruption_or_dropout_or_caution_never_lowers_the_degree() -> None:
    n = 120
    chosen = {(c, d): sparse_parameters(n, declared(n, c, d)) for c in range(0, 60, 3) for d in range(0, 48, 3)}
    for (c, d), parameters in chosen.items():
        for more in ((c + 3, d), (c, d + 3)):
            assert more not in chosen or chosen[more].degree >= parameters.degree
        if (c + 3, d) in chosen:
            assert chosen[c + 3, d].threshold >= parameters.threshold
    assert len({parameters.degree for parameters in chosen.values()}) > 10
    assert {parameters.complete for parameters in chosen.values()} == {True, False}
    for name in ("security_bits", "correctness_bits"):
        degrees = [sparse_parameters(400, ThreatModel(0.2, 0.1, **{name: bits})).degree for bits in (10, 20, 40, 80)]
        assert degrees == sorted(degrees)
        assert len(set(degrees)) > 1


def test_a_client_that_asks_for_more_survivors_gets_a_graph_in_which_it_finds_them() -> None:
    model = ThreatModel(0.1, 0.1)
    chosen = [sparse_parameters(1000, model, least) for least in (2, 30, 60, 120)]
    assert [parameters.degree for parameters in chosen] == [50, 54, 92, 164]
    for least, parameters in zip((2, 30, 60, 120), chosen, strict=True):
        assert parameters.min_survivors >= max(least, parameters.threshold)
        assert parameters.degree + 1 > parameters.min_survivors


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize(("corrupt", "dropout"), [(0.2, 0.1), (0.33, 0.1)])
def test_a_sparse_graph_saves_more_the_more_clients_there_are(n: int, corrupt: float, dropout: float) -> None:
    chosen = sparse_parameters(n, ThreatModel(corrupt, dropout))
    assert chosen.degree < {100: 60, 1000: 120, 10_000: 145}[n]
    c, d = ThreatModel(corrupt, dropout).corrupt_of(n), ThreatModel(corrupt, dropout).dropouts_of(n)
    assert conditions(n, c, d, chosen.degree, chosen.threshold, 2, 40, 30)
    assert not conditions(n, c, d, chosen.degree, chosen.threshold + 1, 2, 40, 30)
    below = range(2, chosen.degree)
    assert not any(conditions(n, c, d, chosen.degree - 2, t, 2, 40, 30) for t in below)
