"""An asker that seals one query for one scorer and another one for the rest: their scores cannot be added up.

The sum of one scorer's true scores and of everybody else's answers to zeros would be that scorer's own.
"""

import numpy as np
import pytest

from protocols.foundation.errors import Aborted, PeerMisbehaved, PeersRefused, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores import asking
from protocols.sums.secagg.session import SecAggSession
from tests.support.hidden_queries import batch_of, run_hidden, shape_of, some_tables, within
from tests.support.score_batches import BEARING, Batch, hold_batches, some_scores, terms_of
from tests.support.score_cases import sealed_backends

VICTIM = PartyId(3)
SCORERS = [PartyId(number) for number in range(2, 6)]
_seal = SecAggSession.seal_for


@pytest.fixture
def equivocating(monkeypatch: pytest.MonkeyPatch) -> None:
    """All scorers but one are asked zeros in place of the last bytes of the queries."""

    def seal_for(self: SecAggSession, peer: PartyId, use: str, secret: bytes) -> bytes:
        if use.startswith("ask scores/") and peer != VICTIM:
            secret = secret[:-4] + bytes(4)
        return _seal(self, peer, use, secret)

    monkeypatch.setattr(SecAggSession, "seal_for", seal_for)


def come_to_nothing(result: Batch) -> bool:
    """No scorer has a part in a total or an answer, and each of them says why."""
    refused = all(result.raised(scorer) in (PeerMisbehaved, PeersRefused, SumAbandoned, Aborted) for scorer in SCORERS)
    return refused and result.raised(VICTIM) is not None and not result.answers and not result.contributors


@sealed_backends
@pytest.mark.usefixtures("equivocating")
@pytest.mark.parametrize("least", [1, 2])
def test_scorers_that_were_asked_different_things_do_not_add_up(backend: str, least: int) -> None:
    terms = terms_of(5, 20, least=least)
    result = hold_batches(backend, [(terms, some_scores(terms))], BEARING["semi-honest"])
    assert come_to_nothing(result)
    assert result.raised(SERVER) is not None


@pytest.mark.usefixtures("equivocating")
def test_nor_do_they_against_active_parties() -> None:
    terms = terms_of(5, 20)
    assert come_to_nothing(hold_batches("masked", [(terms, some_scores(terms))], BEARING["signed"]))


@pytest.mark.usefixtures("equivocating")
def test_hidden_queries_that_differ_do_not_add_up_either() -> None:
    shape = shape_of([1])
    first = batch_of(5, 10, shape, round=RoundId(0))
    queries = within(np.random.default_rng(1), 1, shape)
    result = run_hidden(first, some_tables(first), [(batch_of(5, 10, shape, round=RoundId(1)), queries)])
    assert result.rankings == []
    assert VICTIM in result.problems


def test_the_common_secret_is_that_of_one_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from what was drawn and from all that was asked: the server, which has neither, cannot test guesses."""
    kept: dict[PartyId, asking.Asked] = {}
    asked_ = asking.asked

    def asked(session, channels, terms, attached=0):  # type: ignore[no-untyped-def]
        kept[session.party] = asked_(session, channels, terms, attached)
        return kept[session.party]

    monkeypatch.setattr(asking, "asked", asked)
    terms, seen = terms_of(4, 6), []
    for _ in range(2):
        result = hold_batches("masked", [(terms, some_scores(terms))])
        assert not result.problems
        assert len({one.secrets.common for one in kept.values()}) == 1
        seen.append(kept[VICTIM].secrets.common)
    assert seen[0] != seen[1], "the same queries, and other secrets"
