"""Whole batches of encrypted scores: the ranking in clear to the last bit, dropouts, and parties that misbehave."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.bundles import AskerReads
from protocols.foundation import wire
from protocols.foundation.errors import Aborted, PeerMisbehaved, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.registry import SCORES
from protocols.scores.encrypted import messages, paillier
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import AskerKey, EncryptedScores, EncryptedTotal
from protocols.scores.encrypted.paillier_keys import draw_primes
from protocols.scores.interface import Scores
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.sums.secagg.messages import MaskedInput, UnmaskShares
from tests.support.encrypted_scores import BACKENDS, SCHEMES, Bent, bending, small_paillier, stopping
from tests.support.in_threads import SESSION
from tests.support.score_batches import (
    BEARING,
    TRUSTING,
    Batch,
    Wrap,
    expected,
    hold_batches,
    run_batches,
    same_ranking,
    some_scores,
    terms_of,
)
from tests.support.sum_conversations import Foreseen

pytest.importorskip("gmpy2")
pytest.importorskip("phe")
pytest.importorskip("tenseal")
every_backend = pytest.mark.parametrize("backend", BACKENDS)
TWO, THREE = PartyId(2), PartyId(3)
Wraps: TypeAlias = Mapping[PartyId, Wrap]


@pytest.fixture(scope="module", autouse=True)
def short_keys() -> Iterator[None]:
    with small_paillier():
        yield


def right(batch: Batch, terms: ScoreTerms, scores: dict[PartyId, Scores]) -> bool:
    """Positions and means, to the last bit."""
    answer, wanted = batch.answers[-1].ranking, expected(scores, terms)
    assert answer.means is not None
    assert wanted.means is not None
    same_means = all(np.array_equal(a, b) for a, b in zip(answer.means, wanted.means, strict=True))
    return same_ranking(answer, wanted) and same_means


@st.composite
def batches(draw: st.DrawFn) -> tuple[ScoreTerms, dict[PartyId, Scores]]:
    """Holdings and scores with ties, empty clients, single holders, and fewer positions than answers are asked for."""
    clients, positions = draw(st.integers(3, 6)), draw(st.integers(1, 8))
    terms = terms_of(
        clients,
        positions,
        asker=PartyId(draw(st.integers(1, clients + 1))),  # the last one is a party outside
        queries=draw(st.integers(1, 3)),
        top=draw(st.sampled_from([1, 3, 20])),
        least=draw(st.integers(1, 2)),
    )
    made = {}
    value = draw(st.sampled_from([st.just(0.5), st.sampled_from([-2.0, 0.0, 2.0]), st.floats(-40, 40, width=32)]))
    for party in terms.clients:
        held = np.flatnonzero(draw(st.lists(st.booleans(), min_size=positions, max_size=positions))).astype(np.int64)
        size = terms.queries * len(held)
        values = np.array(draw(st.lists(value, min_size=size, max_size=size)), dtype=np.float32)
        made[party] = Scores(held, values.reshape(terms.queries, len(held)))
    return terms, made


@pytest.mark.long
@every_backend
@given(drawn=batches())
@settings(deadline=None, max_examples=12)
def test_the_ranking_is_the_one_in_clear(backend: str, drawn: tuple[ScoreTerms, dict[PartyId, Scores]]) -> None:
    terms, scores = drawn
    batch = run_batches(backend, [(terms, scores)])
    assert right(batch, terms, scores)
    assert batch.contributors == [frozenset(terms.scorers)]
    assert batch.answers[0].ranking.contributors == frozenset(map(int, terms.scorers))


@every_backend
def test_batches_follow_each_other_with_several_askers(backend: str) -> None:
    first = terms_of(4, 50, queries=2)
    askers = [PartyId(1), PartyId(3), PartyId(1)]
    runs = [replace(first, round=RoundId(1 + 3 * number), asker=asker) for number, asker in enumerate(askers)]
    scores = [some_scores(first, number) for number in range(3)]
    batch = run_batches(backend, list(zip(runs, scores, strict=True)), TRUSTING["semi-honest"])
    for answer, terms, of_batch in zip(batch.answers, runs, scores, strict=True):
        assert same_ranking(answer.ranking, expected(of_batch, terms))
        assert answer.report.spent.cpu_seconds > 0


@every_backend
def test_several_ciphertexts(backend: str) -> None:
    terms = terms_of(3, 1100, queries=4, least=2)
    scores = some_scores(terms)
    assert right(run_batches(backend, [(terms, scores)]), terms, scores)


@pytest.mark.long
def test_a_batch_of_more_bytes_than_parties_take_unasked() -> None:
    terms = terms_of(3, 20_000, queries=16)
    scores = some_scores(terms)
    scheme = SCHEMES["bfv"]()
    ciphertexts = scheme.ciphertexts(EncryptedLayout(terms, scheme.group))
    assert ciphertexts * 60_000 > wire.SMALL_FRAME_BYTES
    assert right(run_batches("bfv", [(terms, scores)]), terms, scores)


@every_backend
def test_frames_are_no_larger_than_is_admitted(backend: str) -> None:
    scheme, terms = SCHEMES[backend](), terms_of(5, 900)
    layout, key = EncryptedLayout(terms, scheme.group), scheme.new_key()
    ciphertexts = scheme.load(key.public).encrypt(layout.group.zeros(layout.entries), layout)
    count, longest = scheme.ciphertexts(layout), scheme.ciphertext_bytes
    assert len(ciphertexts) == count
    sent = [
        (scheme.kinds.key(PURPOSE, key.public), messages.key_frame_bytes(scheme.key_bytes)),
        (scheme.kinds.scores(PURPOSE, ciphertexts, bytes(32)), messages.scores_frame_bytes(count, longest)),
        (scheme.kinds.total(PURPOSE, [2, 3, 4, 5], ciphertexts), messages.total_frame_bytes(terms, count, longest)),
    ]
    for message, most in sent:
        size = len(wire.encode(message, SESSION, RoundId(1)))
        assert size <= most
        if backend != "bfv":  # whose bytes are compressed
            assert size == most


# --- dropouts -------------------------------------------------------------------------------------------------------


def with_dropout(backend: str, terms: ScoreTerms, moment: type[wire.Message], wrap: Wraps | None = None) -> Batch:
    """Client 2 drops out at its message of one kind."""
    step = {EncryptedScores: "masked input", UnmaskShares: "unmasking"}[moment]
    patience = Foreseen((f"{step}/{PURPOSE}", TWO))
    kind = BEARING["semi-honest"] if len(terms.clients) > 3 else TRUSTING["semi-honest"]
    bent = {TWO: stopping(moment, PURPOSE), **(wrap or {})}
    return hold_batches(backend, [(terms, some_scores(terms))], kind, patience, bent)


def without(scores: dict[PartyId, Scores], party: PartyId) -> dict[PartyId, Scores]:
    return {one: of_one for one, of_one in scores.items() if one != party}


@every_backend
@pytest.mark.parametrize("asker", [1, 6], ids=["client", "outside"])
@pytest.mark.parametrize("moment", [EncryptedScores, UnmaskShares], ids=lambda moment: moment.__name__)
def test_a_dropout_costs_nothing_but_its_own_scores(backend: str, moment: type[wire.Message], asker: int) -> None:
    terms = terms_of(5, 30, queries=2, asker=PartyId(asker))
    batch = with_dropout(backend, terms, moment)
    assert batch.problems == {}
    # Its masks are removed by the correction; if it has sent its scores, they are in the sum.
    late = moment is UnmaskShares
    scores = some_scores(terms) if late else without(some_scores(terms), TWO)
    assert right(batch, terms, scores)
    assert [who for who, _ in batch.dropouts] == [frozenset({TWO})]
    assert batch.contributors == [frozenset(terms.scorers) - (frozenset() if late else {TWO})]


@every_backend
def test_a_dropout_after_the_count_costs_an_attempt_and_nothing_is_sent_twice(backend: str) -> None:
    terms = terms_of(5, 30, least=2)
    sent: list[tuple[int, bytes]] = []

    def note(message: Any, round_id: RoundId) -> wire.Message:
        if isinstance(message, EncryptedScores):
            sent.append((int(round_id), message.ciphertexts[0]))
        return message  # type: ignore[no-any-return]

    batch = with_dropout(backend, terms, EncryptedScores, {THREE: lambda inner: Bent(inner, note)})
    assert batch.problems == {}
    assert right(batch, terms, without(some_scores(terms), TWO))
    assert [number for number, _ in sent] == [1, 2]
    assert sent[0][1] != sent[1][1]


@every_backend
def test_of_three_clients_none_may_drop_out(backend: str) -> None:
    batch = with_dropout(backend, terms_of(3, 10), EncryptedScores)
    assert batch.answers == []
    assert {batch.raised(party) for party in (SERVER, PartyId(1), THREE)} == {SumAbandoned}


@every_backend
def test_an_asker_that_drops_out_before_its_key_costs_the_batch(backend: str) -> None:
    terms = terms_of(4, 10)
    bent = {PartyId(1): stopping(AskerKey, PURPOSE)}
    patience = Foreseen((f"key/{PURPOSE}", PartyId(1)), ("ask", PartyId(1)))
    batch = hold_batches(backend, [(terms, some_scores(terms))], BEARING["semi-honest"], patience, bent)
    assert batch.answers == []
    assert batch.raised(SERVER) is SumAbandoned
    assert "the asker has dropped out" in str(batch.problems[SERVER])


# --- parties that misbehave -----------------------------------------------------------------------------------------


def bent_batch(backend: str, wrap: Wraps, terms: ScoreTerms | None = None) -> Batch:
    """A batch of four clients in which somebody's messages are bent."""
    terms = terms or terms_of(4, 30)
    return hold_batches(backend, [(terms, some_scores(terms))], BEARING["semi-honest"], wrap=wrap)


def refused(batch: Batch, party: PartyId, problem: str) -> bool:
    """Whether the party has ended it, as misbehaviour of another, with these words."""
    return batch.raised(party) is PeerMisbehaved and problem in str(batch.problems[party])


def with_ciphertexts(sent: EncryptedScores, ciphertexts: list[bytes]) -> wire.Message:
    return type(sent)(sent.purpose, ciphertexts, sent.peers)


CHANGES: dict[str, Callable[[EncryptedScores], wire.Message]] = {
    "truncated": lambda sent: with_ciphertexts(sent, [sent.ciphertexts[0][:-1], *sent.ciphertexts[1:]]),
    "one too many": lambda sent: with_ciphertexts(sent, [*sent.ciphertexts, sent.ciphertexts[0]]),
    "garbage": lambda sent: with_ciphertexts(sent, [b"\x07" * 99] * len(sent.ciphertexts)),
    "too long": lambda sent: with_ciphertexts(sent, [b"\x07" * (1 << 17)] * len(sent.ciphertexts)),
}


@every_backend
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_forged_scores_end_the_session_and_name_their_sender(
    backend: str, change: Callable[[EncryptedScores], wire.Message]
) -> None:
    batch = bent_batch(backend, {TWO: bending(EncryptedScores, change)})
    assert refused(batch, SERVER, "client 2 sends no encrypted scores")
    assert batch.raised(PartyId(1)) is Aborted


@every_backend
def test_scores_masked_with_others_are_noticed(backend: str) -> None:
    def with_other_peers(sent: EncryptedScores) -> wire.Message:
        return type(sent)(sent.purpose, sent.ciphertexts, bytes(32))

    batch = bent_batch(backend, {TWO: bending(EncryptedScores, with_other_peers)})
    assert refused(batch, SERVER, "masked with others than its neighbours")


@every_backend
def test_a_masked_input_in_the_place_of_an_encrypted_one_is_refused(backend: str) -> None:
    def in_clear(sent: EncryptedScores) -> wire.Message:
        return MaskedInput(sent.purpose, np.zeros(38, dtype="<u4"), sent.peers)

    assert bent_batch(backend, {TWO: bending(EncryptedScores, in_clear)}).raised(SERVER) is UnexpectedMessage


@every_backend
def test_scores_of_an_earlier_batch_do_not_pass(backend: str) -> None:
    """Replayed under the next round's number: what was encrypted has the masks of another sum."""
    kept: list[EncryptedScores] = []

    def replay(sent: EncryptedScores) -> wire.Message:
        kept.append(sent)
        return kept[0]

    terms = terms_of(4, 30)
    runs = [(terms, some_scores(terms)), (replace(terms, round=RoundId(4)), some_scores(terms, 1))]
    batch = hold_batches(backend, runs, BEARING["semi-honest"], wrap={TWO: bending(EncryptedScores, replay)})
    assert len(batch.answers) == 1
    assert refused(batch, SERVER, "masked with others than its neighbours")


@every_backend
def test_a_key_that_the_server_puts_in_is_refused_by_the_scorers(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(paillier, "draw_primes", draw_primes)  # another one than the asker's
        other = SCHEMES[backend]().new_key().public
    batch = bent_batch(backend, {SERVER: bending(AskerKey, lambda sent: type(sent)(sent.purpose, other))})
    assert any(refused(batch, PartyId(party), "a key that is not that of client 1") for party in (2, 3, 4))
    assert batch.answers == []


@every_backend
@pytest.mark.parametrize("key", [b"\x03", bytes(128), b"\xfe" + b"\xff" * 127, b"\x07" * 5000], ids=len)
def test_an_asker_with_no_key_is_refused_by_the_server(backend: str, key: bytes) -> None:
    batch = bent_batch(backend, {PartyId(1): bending(AskerKey, lambda sent: type(sent)(sent.purpose, key))})
    assert refused(batch, SERVER, "key")


TOTALS: dict[str, tuple[Callable[[EncryptedTotal], wire.Message], str]] = {
    "a stranger": (lambda sent: type(sent)(sent.purpose, [2, 3, 9], sent.ciphertexts), "take no part"),
    "too few": (lambda sent: type(sent)(sent.purpose, [2], sent.ciphertexts), "fewer than 2"),
    "one missing": (lambda sent: type(sent)(sent.purpose, sent.contributors, sent.ciphertexts[1:]), "instead of"),
    "garbage": (lambda sent: type(sent)(sent.purpose, [2, 3, 4], [b"\x07"] * len(sent.ciphertexts)), "ciphertext"),
}


@every_backend
@pytest.mark.parametrize(("change", "problem"), TOTALS.values(), ids=TOTALS)
def test_totals_that_are_none_are_refused_by_the_asker(
    backend: str, change: Callable[[EncryptedTotal], wire.Message], problem: str
) -> None:
    batch = bent_batch(backend, {SERVER: bending(EncryptedTotal, change)}, terms_of(4, 1100, queries=4))
    assert refused(batch, PartyId(1), problem)


@every_backend
def test_a_total_that_the_server_has_changed_is_not_noticed(backend: str) -> None:
    """What the disclosure says: these backends do not stand against an active server."""
    scheme = SCHEMES[backend]()
    terms = terms_of(4, 30)
    layout = EncryptedLayout(terms, scheme.group)
    keys: list[bytes] = []

    def add_one(message: Any, round_id: RoundId) -> wire.Message:
        if isinstance(message, AskerKey):
            keys.append(message.key)
        if not isinstance(message, EncryptedTotal):
            return message  # type: ignore[no-any-return]
        adder, more = scheme.load(keys[0]).adder(layout), layout.group.zeros(layout.entries)
        more[:30] = 5
        adder.add(message.ciphertexts)
        return type(message)(message.purpose, message.contributors, adder.close(more))

    batch = bent_batch(backend, {SERVER: lambda inner: Bent(inner, add_one)}, terms)
    assert batch.problems == {}
    assert not right(batch, terms, some_scores(terms))


# --- what the bundles say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backend", "packages"), [("paillier", ("phe", "gmpy2")), ("bfv", ("tenseal",))])
def test_bundles(backend: str, packages: tuple[str, ...]) -> None:
    bundle = SCORES[backend]
    assert bundle.packages == packages
    assert bundle.needs_keys
    assert not bundle.stands_against_active
    assert not bundle.server_reads_scores
    assert not bundle.reads_all_with_a_client
    assert bundle.asker_reads is AskerReads.MEANS
    classes = {one.field_class for fields in bundle.disclosure.fields.values() for one in fields.values()}
    assert classes == {"public", "ciphertext"}
    for make in (bundle.client, bundle.server):
        with pytest.raises(ValueError, match="needs keys"):
            make(None)


def test_numbers_on_the_wire() -> None:
    numbers = {kind: number for kind, number in wire._NUMBERS.items() if kind.__module__ == messages.__name__}
    assert {kind.__name__: number for kind, number in numbers.items()} == {
        "PaillierKey": 0x0421,
        "PaillierScores": 0x0422,
        "PaillierTotal": 0x0423,
        "BfvKey": 0x0432,
        "BfvScores": 0x0431,
        "BfvTotal": 0x0434,
    }
