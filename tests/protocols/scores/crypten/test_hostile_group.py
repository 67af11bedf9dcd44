"""Hostile clients and askers of the backend `crypten`: a documented abort, no wrong answer, nobody who waits for ever.

Whole batches as threads: all messages are real. What CrypTen would compute with a process per party is computed in
clear here, by a group that breaks for everybody as soon as one of its clients does not come, as a real one does.
"""

import secrets
import threading
import time
from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.scores import asking
from protocols.scores.crypten import binding
from protocols.scores.crypten import client as crypten_client
from protocols.scores.crypten import server as crypten_server
from protocols.scores.crypten.client import CryptenScoreClient
from protocols.scores.crypten.launcher import BatchJob, run
from protocols.scores.crypten.messages import AnswerShares, JoinGroup
from protocols.scores.messages import AskScores
from protocols.scores.ranking import rank
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.sums.secagg.session import SecAggSession
from tests.support.bent_scores import bending
from tests.support.crypten_jobs import asker_of_two_things, scorer_with_false_shares
from tests.support.in_threads import PATIENCE, SESSION
from tests.support.score_batches import Batch, Wrap, expected, hold_batches, same_ranking, some_scores, terms_of
from tests.support.sum_conversations import instead_of

ASKER, TWO, THREE, FOUR, FIVE = (PartyId(number) for number in range(1, 6))
TERMS = terms_of(4, 9, queries=2, top=4)
LATER = terms_of(4, 9, queries=2, top=4, round=RoundId(4))
OUTSIDE = terms_of(4, 9, queries=2, top=4, asker=FIVE)
Change = Callable[[wire.Message], wire.Message | bytes]


class Groups:
    """Groups of threads, by the address that they meet at."""

    def __init__(self) -> None:
        self._all_here = threading.Condition()
        self._here: dict[tuple[str, int], dict[int, crypten_client._Part]] = {}
        self._shares: dict[tuple[str, int], list[np.ndarray]] = {}
        self._broken = False

    @property
    def computed(self) -> int:
        return len(self._shares)

    def leave(self) -> None:
        """The process of one client is gone, and with it every group."""
        with self._all_here:
            self._broken = True
            self._all_here.notify_all()

    def words(self, joined: crypten_client._Joined, part: crypten_client._Part) -> np.ndarray:
        """One client's shares; `RuntimeError` from a group that breaks, as from torch."""
        seat = joined.seat
        where, me = (seat.host, seat.port), joined.participants[seat.rank]
        with self._all_here:
            here = self._here.setdefault(where, {})
            here[me] = part
            whole = lambda: len(here) == seat.computing  # noqa: E731
            self._all_here.notify_all()
            if not self._all_here.wait_for(lambda: self._broken or whole(), PATIENCE) or not whole():
                raise RuntimeError("Connection closed by peer. A test")
            if where not in self._shares:
                self._shares[where] = _shares(here, seat.computing)
            return self._shares[where][seat.rank]


def _shares(parts: dict[int, crypten_client._Part], computing: int) -> list[np.ndarray]:
    """Of the answer words [queries, answers], by rank."""
    keys = next(iter(parts.values())).keys
    sums = [part.encoded.sums for part in parts.values()]
    total = sums[0]
    for one in sums[1:]:
        total = total.plus(one)
    words = np.zeros((keys.terms.queries, keys.answers), dtype=np.int64)
    for row, positions in zip(words, rank(total, frozenset(), keys.terms).positions, strict=True):
        row[: len(positions)] = (2 << keys.position_bits) - 1 - positions
    drawn = [
        np.frombuffer(secrets.token_bytes(words.nbytes), dtype=np.int64).reshape(words.shape) for _ in range(computing)
    ]
    for one in drawn[1:]:
        words = words ^ one
    return [words, *drawn[1:]]


class NoDealer:
    """Nobody needs it in threads."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def deal(self, host: str, port: int, keys: list[bytes]) -> None: ...

    def done(self, seconds: float) -> Spent:
        return Spent()


@pytest.fixture(autouse=True)
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    """Everything but CrypTen's own processes."""
    made, join = Groups(), CryptenScoreClient._join

    def joining(self, *asked):  # type: ignore[no-untyped-def]
        try:
            return join(self, *asked)
        except SumAbandoned:  # its process goes on
            raise
        except BaseException:
            made.leave()
            raise

    def in_group(self, joined, listener, part):  # type: ignore[no-untyped-def]
        try:
            return made.words(joined, part)
        except RuntimeError as problem:
            raise SumAbandoned(f"the CrypTen group broke: {problem}") from None

    monkeypatch.setattr(crypten_client, "require_own_process", lambda: None)
    monkeypatch.setattr(crypten_client, "load_crypten", lambda: None)
    monkeypatch.setattr(crypten_server, "Dealing", NoDealer)
    monkeypatch.setattr(CryptenScoreClient, "_join", joining)
    monkeypatch.setattr(CryptenScoreClient, "_in_group", in_group)
    return made


def held(*terms: ScoreTerms, wrap: dict[PartyId, Wrap] | None = None) -> Batch:
    return hold_batches("crypten", [(one, some_scores(one)) for one in terms], wrap=wrap)


def saying(kind: type[wire.Message], change: Change, in_round: int = 1) -> Wrap:
    """A client that says something else in place of its message of one kind and round."""

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message | bytes:
        return change(message) if round_id == in_round else message

    return bending(instead_of(kind, bend))


def aborted(result: Batch, answered: int = 0) -> bool:
    """Nobody has read anything of the last batch, and everybody ends with a documented reason."""
    ends = all(isinstance(problem, ProtocolError) for problem in result.problems.values())
    return ends and len(result.answers) == answered and SERVER in result.problems


@pytest.mark.parametrize("terms", [TERMS, OUTSIDE], ids=["asker inside", "asker outside"])
def test_honest_parties_read_the_ranking_of_the_plain_twin(terms: ScoreTerms, groups: Groups) -> None:
    result = held(terms)
    assert result.problems == {}
    assert same_ranking(result.answers[0].ranking, expected(some_scores(terms), terms))
    assert groups.computed == 1


# --- askers that ask different things -------------------------------------------------------------------------------


@pytest.fixture
def equivocating(monkeypatch: pytest.MonkeyPatch) -> Callable[[PartyId], None]:
    """One scorer is asked zeros in place of the last bytes of the queries."""
    seal = SecAggSession.seal_for

    def install(victim: PartyId) -> None:
        def seal_for(self: SecAggSession, peer: PartyId, use: str, secret: bytes) -> bytes:
            other = use.startswith("ask scores/") and peer == victim
            return seal(self, peer, use, secret[:-4] + bytes(4) if other else secret)

        monkeypatch.setattr(SecAggSession, "seal_for", seal_for)

    return install


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize(("asker", "victim"), [(1, 2), (1, 3), (1, 4), (3, 1), (3, 2), (5, 1), (5, 4)])
def test_scorers_that_were_asked_different_things_form_no_group(
    asker: int, victim: int, least: int, equivocating: Callable[[PartyId], None], groups: Groups
) -> None:
    equivocating(PartyId(victim))
    result = held(terms_of(4, 9, queries=2, top=4, asker=PartyId(asker), least=least))
    assert aborted(result)
    assert groups.computed == 0
    assert result.contributors == []
    told = " ".join(str(problem) for problem in result.problems.values())
    assert "was asked something else" in told or least > 1


def test_an_asker_that_asks_one_scorer_alone_gets_no_answer(groups: Groups) -> None:
    """The others drop out, and one scorer is no group."""

    def alone(message: wire.Message) -> wire.Message:
        assert isinstance(message, AskScores)
        return msgspec.structs.replace(message, sealed={2: bytes(40)})

    result = held(TERMS, wrap={ASKER: saying(AskScores, alone)})
    assert aborted(result)
    assert groups.computed == 0


# --- forged, truncated and replayed messages ------------------------------------------------------------------------


def flipped(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def forged_keys(message: wire.Message) -> wire.Message:
    assert isinstance(message, JoinGroup)
    return msgspec.structs.replace(message, sealed={peer: flipped(key) for peer, key in message.sealed.items()})


def exchanged_keys(message: wire.Message) -> wire.Message:
    """Each is sealed for another client."""
    assert isinstance(message, JoinGroup)
    peers = sorted(message.sealed)
    turned = dict(zip(peers, (message.sealed[peer] for peer in (*peers[1:], peers[0])), strict=True))
    return msgspec.structs.replace(message, sealed=turned)


def small_order(message: wire.Message) -> wire.Message:
    """The secret with the dealer would be known to everybody."""
    assert isinstance(message, JoinGroup)
    return msgspec.structs.replace(message, public=bytes(32))


def without_keys(message: wire.Message) -> wire.Message:
    assert isinstance(message, JoinGroup)
    return msgspec.structs.replace(message, sealed={})


@pytest.mark.parametrize("terms", [TERMS, OUTSIDE], ids=["asker inside", "asker outside"])
@pytest.mark.parametrize("hostile", [ASKER, TWO, FOUR], ids="client {}".format)
@pytest.mark.parametrize("change", [forged_keys, exchanged_keys, small_order, without_keys])
def test_forged_joins_form_no_group(change: Change, hostile: PartyId, terms: ScoreTerms, groups: Groups) -> None:
    result = held(terms, wrap={hostile: saying(JoinGroup, change)})
    if change is without_keys:  # abandoned, and asked again without harm
        assert result.problems == {}
        assert same_ranking(result.answers[0].ranking, expected(some_scores(terms), terms))
    else:
        assert aborted(result)
        assert groups.computed == 0


def shares(make: Callable[[bytes], bytes]) -> Change:
    def change(message: wire.Message) -> wire.Message:
        assert isinstance(message, AnswerShares)
        return msgspec.structs.replace(message, sealed=make(message.sealed))

    return change


@pytest.mark.parametrize("terms", [TERMS, OUTSIDE], ids=["asker inside", "asker outside"])
@pytest.mark.parametrize(
    "make",
    [flipped, lambda sealed: sealed[:-8], lambda sealed: sealed + bytes(8), lambda sealed: bytes(len(sealed))],
    ids=["forged", "shorter", "longer", "zeros"],
)
def test_forged_shares_of_an_answer_are_refused(make: Callable[[bytes], bytes], terms: ScoreTerms) -> None:
    result = held(terms, wrap={THREE: saying(AnswerShares, shares(make))})
    assert result.answers == []
    assert isinstance(result.problems[terms.asker], PeerMisbehaved)
    assert all(isinstance(problem, ProtocolError) for problem in result.problems.values())


def sent_again(kind: type[wire.Message]) -> Wrap:
    """In place of a message of the later batch, what this client has said in the first."""
    kept: list[wire.Message] = []

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        kept.append(message)
        return kept[0]

    return bending(instead_of(kind, bend))


@pytest.mark.parametrize(
    ("kind", "hostile"), [(JoinGroup, TWO), (JoinGroup, ASKER), (AnswerShares, THREE), (AskScores, ASKER)]
)
def test_messages_of_an_earlier_batch_are_refused(kind: type[wire.Message], hostile: PartyId) -> None:
    result = held(TERMS, LATER, wrap={hostile: sent_again(kind)})
    assert len(result.answers) == 1
    assert same_ranking(result.answers[0].ranking, expected(some_scores(TERMS), TERMS))
    assert any(isinstance(problem, PeerMisbehaved) for problem in result.problems.values())
    assert all(isinstance(problem, ProtocolError) for problem in result.problems.values())


def cut(kept: float, message: wire.Message) -> bytes:
    frame = bytes(wire.encode(message, SESSION, TERMS.round))
    return frame[: int(len(frame) * kept)]


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize(("kind", "hostile"), [(AskScores, ASKER), (JoinGroup, FOUR), (AnswerShares, TWO)])
def test_truncated_frames_end_the_batch(kind: type[wire.Message], hostile: PartyId, kept: float) -> None:
    result = held(TERMS, wrap={hostile: saying(kind, partial(cut, kept))})
    assert aborted(result)


@pytest.mark.parametrize("kind", [JoinGroup, AnswerShares])
def test_a_message_in_place_of_another_ends_the_batch(kind: type[wire.Message]) -> None:
    result = held(TERMS, wrap={THREE: saying(kind, lambda message: AskScores("scores", {2: bytes(40)}))})
    assert aborted(result)


# --- whole runs, a process per party --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("hostile", "part"), [(ASKER, asker_of_two_things), (THREE, scorer_with_false_shares)], ids=["asker", "scorer"]
)
def test_whole_runs_with_a_hostile_client_come_to_nothing(hostile: PartyId, part: Callable[..., object]) -> None:
    terms = terms_of(4, 9, top=3)
    job = BatchJob((terms,), (some_scores(terms),), patience=5.0)
    ended = run(job, 120.0, {hostile: partial(part, job)})
    assert ended[ASKER].value is None
    assert ended[ASKER].problem.startswith(("PeerMisbehaved: ", "SumAbandoned: ", "DeadlineExpired: "))
    assert all(one.value or one.problem for one in ended.values())


def test_an_asker_with_a_scorer_on_its_side_cannot_stand_around_a_victim(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client 1 asks client 2 something else; client 3 is next in the ring, and does not look."""
    seal, open_, agree = SecAggSession.seal_for, SecAggSession.open_from, asking.agreed
    alike: dict[int, bytes] = {}

    def agreed(secrets: asking.BatchSecrets, session: ClientSession, terms: ScoreTerms) -> bytes:
        alike[int(session.party)] = agree(secrets, session, terms)
        return alike[int(session.party)]

    def seal_for(self: SecAggSession, peer: PartyId, use: str, secret: bytes) -> bytes:
        if use.startswith("ask scores/") and peer == TWO:
            secret = secret[:-4] + bytes(4)
        if use == binding.ring_use(TERMS) and peer == TWO and secret[:32] == alike.get(1):
            deadline = time.monotonic() + 20
            while 2 not in alike and time.monotonic() < deadline:
                time.sleep(0.001)
            secret = alike[2] + secret[32:]  # which the asker can compute by itself
        return seal(self, peer, use, secret)

    def open_from(self: SecAggSession, peer: PartyId, use: str, sealed: bytes) -> bytes:
        plain = open_(self, peer, use, sealed)
        return alike[3] + plain[32:] if use == binding.ring_use(TERMS) and (self.party, peer) == (3, TWO) else plain

    monkeypatch.setattr(asking, "agreed", agreed)
    monkeypatch.setattr(SecAggSession, "seal_for", seal_for)
    monkeypatch.setattr(SecAggSession, "open_from", open_from)
    result = held(TERMS)
    assert groups.computed == 0
    assert result.answers == []
