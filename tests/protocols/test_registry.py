"""The registry: complete bundles, an error for every unknown name, and no protocol that runs without what it needs."""

import dataclasses
from typing import Any

import pytest

from protocols.bundles import Aggregation, Alignment, ServerReads
from protocols.foundation.disclosure import SLOTS, Disclosure, Field, Learned, Subject, learned, slots_of
from protocols.foundation.errors import UnknownProtocol
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from protocols.session.disclosure import CHANNELS, GROUP_KEY
from protocols.sums.plain import PLAIN_SUMS, ClearInput
from protocols.sums.totals import TotalReader
from tests.support.toy_aggregation import TOY, registered

BUNDLES: list[Aggregation | Alignment] = [*AGGREGATIONS.values(), *ALIGNMENTS.values()]
DISCLOSURES = {
    one.place: one
    for one in (
        *(bundle.disclosure for bundle in BUNDLES),
        *(bundle.count.disclosure for bundle in AGGREGATIONS.values()),
        *(bundle.revealing for bundle in ALIGNMENTS.values() if bundle.revealing is not None),
        CHANNELS,
        GROUP_KEY,
    )
}
OF_SUMS = {Subject.ROWS, Subject.HOLDERS, Subject.METRICS, Subject.PARTICIPATION}


def test_the_choices_are_those_of_the_command_line() -> None:
    assert list(AGGREGATIONS) == ["secagg", "secret", "plain"]
    assert list(ALIGNMENTS) == ["psu", "plain"]


@pytest.mark.parametrize("name", ["", "Secagg", "secure", "megaphone"])
def test_an_unknown_name_raises_and_the_known_ones_are_listed(name: str) -> None:
    for registry in (AGGREGATIONS, ALIGNMENTS):
        assert name not in registry
        for ask in (registry.__getitem__, registry.get, registry.unregister):
            with pytest.raises(UnknownProtocol, match=f"unknown .* '{name}': there are .*plain"):
                ask(name)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: f"{type(bundle).__name__} {bundle.name}")
def test_every_bundle_has_words_for_every_place_where_it_is_announced(bundle: Aggregation | Alignment) -> None:
    disclosure = bundle.disclosure
    assert disclosure.choice
    assert disclosure.in_brief
    assert disclosure.fields
    assert Subject.PARTICIPATION in disclosure.learned
    if isinstance(bundle, Aggregation):
        assert disclosure.learned.keys() == OF_SUMS
        assert {Subject.HOLDERS, Subject.RARE_ROWS} <= bundle.count.disclosure.learned.keys()
    else:
        assert Subject.NAMES in disclosure.learned


@pytest.mark.parametrize("place", DISCLOSURES)
def test_every_disclosure_is_complete(place: str) -> None:
    one = DISCLOSURES[place]
    for entry in dataclasses.fields(one):
        if entry.type is str and entry.name not in ("choice", "in_brief", "changing_clients"):
            assert getattr(one, entry.name).strip() == getattr(one, entry.name) != ""
    assert all(told.server and told.client for told in one.learned.values())


@pytest.mark.parametrize("bundle", AGGREGATIONS.values(), ids=lambda bundle: bundle.name)
def test_who_reads_a_sum_is_what_the_disclosure_says(bundle: Aggregation) -> None:
    rows = bundle.disclosure.learned[Subject.ROWS]
    assert bundle.sealed == (rows.server == "nothing")
    assert bundle.hides_contributions != ("every client's" in rows.server)
    assert bundle.hides_contributions != ("clear" in {one.field_class for one in _fields(bundle.disclosure)})
    assert bundle.server_reads in ServerReads
    # Sums over different clients tell something only where totals are read and contributions are not.
    assert bool(bundle.disclosure.changing_clients) == (bundle.server_reads is ServerReads.TOTALS)


@pytest.mark.parametrize("bundle", ALIGNMENTS.values(), ids=lambda bundle: bundle.name)
def test_who_reads_names_is_what_the_disclosure_says(bundle: Alignment) -> None:
    assert bundle.server_reads_names == ("every client's" in bundle.disclosure.learned[Subject.NAMES].server)
    assert bundle.server_reads_names == ("clear" in {one.field_class for one in _fields(bundle.disclosure)})
    assert bundle.disclosures(reveal_names=False) == (bundle.disclosure,)


def _fields(disclosure: Disclosure) -> list[Field]:
    return [one for named in disclosure.fields.values() for one in named.values()]


def test_names_are_revealed_only_where_the_alignment_can() -> None:
    assert len(ALIGNMENTS["psu"].disclosures(reveal_names=True)) == 2
    with pytest.raises(ValueError, match="plain"):
        ALIGNMENTS["plain"].disclosures(reveal_names=True)


@pytest.mark.parametrize("bundle", AGGREGATIONS.values(), ids=lambda bundle: bundle.name)
def test_without_keys_a_protocol_that_needs_them_does_not_run(bundle: Aggregation) -> None:
    made: list[Any] = [bundle.client, bundle.count.client]
    asked: list[Any] = [bundle.server, bundle.count.server]
    for make, arguments in [*((one, (None,)) for one in made), *((one, (None, 2)) for one in asked)]:
        if bundle.needs_keys:
            with pytest.raises(ValueError, match="needs keys"):
                make(*arguments)
        else:
            make(*arguments)
    if not bundle.needs_keys:
        assert isinstance(bundle.client(None), TotalReader) == bundle.sealed


def test_a_bundle_is_registered_once_and_only_whole() -> None:
    with registered():
        assert "megaphone" in AGGREGATIONS
        assert list(AGGREGATIONS)[-1] == "megaphone"
        with pytest.raises(ValueError, match="already"):
            AGGREGATIONS.register(TOY)
    assert "megaphone" not in AGGREGATIONS
    silent = dataclasses.replace(TOY, disclosure=dataclasses.replace(TOY.disclosure, choice="", in_brief=""))
    with pytest.raises(ValueError, match="no words"):
        AGGREGATIONS.register(silent)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"against": " "}, "without 'against'"),
        ({"assumes": ""}, "without 'assumes'"),
        ({"not_covered": ""}, "without 'not_covered'"),
        ({"learned": {}}, "what anybody learns"),
        ({"in_brief": ""}, "not both"),
        ({"in_brief": "the {colour} sum"}, "unknown slot: colour"),
        ({"learned": {Subject.ROWS: Learned("{who}")}}, "unknown slot: who"),
        ({"fields": {ClearInput: {}}}, "every field of ClearInput"),
    ],
)
def test_an_incomplete_disclosure_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        dataclasses.replace(PLAIN_SUMS, **change)


def test_what_several_protocols_tell_is_put_together() -> None:
    first = dataclasses.replace(PLAIN_SUMS, learned={Subject.HOLDERS: Learned("a; b", "nothing")})
    second = dataclasses.replace(PLAIN_SUMS, learned={Subject.HOLDERS: Learned("b; c", "nothing")})
    assert learned((first, second), Subject.HOLDERS) == Learned("a; b; c", "nothing")
    assert learned((first, second), Subject.NAMES) is None
    assert slots_of("{shared} and {least}") == {"shared", "least"} <= SLOTS.keys()
