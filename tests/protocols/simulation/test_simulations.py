"""Protocols in one process: what comes out is exact, what the server has of it is what its disclosure says."""

import doctest

import numpy as np
import pytest

import protocols
from protocols import AGGREGATIONS, ProtocolError, simulate_sum, simulate_union
from protocols.simulation import sums, unions

ROWS = {1: [0.5, -1.0], 2: [0.25, 2.0], 3: [4.0, 4.0], 4: [0.25, 3.0]}


@pytest.mark.parametrize("module", [sums, unions])
def test_what_docstrings_show_is_what_happens(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("aggregation", sorted(AGGREGATIONS))
@pytest.mark.parametrize("dropouts", [[], [3]])
def test_every_aggregation_gives_the_sum_of_those_who_stayed(aggregation: str, dropouts: list[int]) -> None:
    done = simulate_sum(ROWS, aggregation=aggregation, dropouts=dropouts)
    staying = sorted(set(ROWS) - set(dropouts))
    assert done.contributors == tuple(staying)
    assert done.total.tolist() == np.sum([ROWS[number] for number in staying], axis=0).tolist()
    assert (done.read_by == "the clients") == AGGREGATIONS[aggregation].sealed
    assert sorted(done.received) == staying


def test_inputs_arrive_in_clear_only_where_the_sum_hides_nothing() -> None:
    clear, again = (simulate_sum(ROWS, aggregation="plain").received for _ in range(2))
    assert all((clear[number] == again[number]).all() for number in ROWS)
    masked, other = (simulate_sum(ROWS).received for _ in range(2))
    assert not any((masked[number][:2] == other[number][:2]).any() for number in ROWS)


def test_positions_agree_and_the_server_is_told_what_is_said() -> None:
    names = [["a", "b"], ["b", "c"], ["a"], ["d", "b"]]
    done = simulate_union(names)
    assert done.size == 4
    places: dict[str, set[int]] = {}
    for own in done.positions.values():
        for name, place in own.items():
            places.setdefault(name, set()).add(place)
    assert all(len(found) == 1 for found in places.values())
    assert len(set().union(*places.values())) == 4
    assert simulate_union(names, alignment="plain").server_learns.startswith("every client's")


@pytest.mark.parametrize(
    ("vectors", "options", "word"),
    [
        ({1: [1.0], 3: [1.0]}, {}, "without a gap"),
        ({}, {}, "without a gap"),
        ([[1.0], [1.0, 2.0], [1.0]], {}, "same length"),
        ([[1.0], [float("nan")], [1.0]], {}, "finite"),
        ([["x"], [1.0], [1.0]], {}, "vector of numbers"),
        (ROWS, {"dropouts": [9]}, "no such client"),
        (ROWS, {"dropouts": [1, 2]}, "3 are needed"),
        (ROWS, {"aggregation": "none"}, "none"),
    ],
)
def test_what_cannot_be_added_up_is_refused(
    vectors: dict[int, list[float]], options: dict[str, str], word: str
) -> None:
    with pytest.raises(ProtocolError, match=word):
        simulate_sum(vectors, **options)  # type: ignore[arg-type]


def test_names_of_the_front_door_exist_and_have_types() -> None:
    assert all(getattr(protocols, name) is not None for name in protocols.__all__)
    assert set(protocols.__all__) <= set(dir(protocols))
    stub = (__import__("pathlib").Path(protocols.__file__).with_suffix(".pyi")).read_text()
    assert {line.rpartition(" ")[2] for line in stub.splitlines()} == set(protocols.__all__)
    with pytest.raises(AttributeError):
        protocols.nothing_of_the_kind  # noqa: B018
