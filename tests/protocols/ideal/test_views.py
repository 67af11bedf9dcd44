"""Views in canonical order: the order in which answers arrive does not show, all else does."""

import itertools
import secrets

from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.ideal.views import SeenFrame, canonical

SESSION = new_session()


def received(party: int, frame: bytes, phase: str = "step") -> SeenFrame:
    return SeenFrame("received", PartyId(party), RoundId(1), phase, frame)


def sent(party: int, frame: bytes, phase: str = "step") -> SeenFrame:
    return SeenFrame("sent", PartyId(party), RoundId(1), phase, frame)


FRAMES = {party: secrets.token_bytes(16) for party in (1, 2, 3)}


def test_answers_of_one_step_are_in_the_order_of_their_senders() -> None:
    views = {
        canonical(SESSION, [received(party, FRAMES[party]) for party in order] + [sent(2, b"reply")])
        for order in itertools.permutations(FRAMES)
    }
    assert len(views) == 1


def test_answers_that_are_passed_on_one_by_one_are_in_that_order_with_their_copies() -> None:
    views = {
        canonical(
            SESSION,
            [frame for party in order for frame in (received(party, FRAMES[party]), sent(9, FRAMES[party]))],
        )
        for order in itertools.permutations(FRAMES)
    }
    (view,) = views
    assert [int(seen.peer) for seen in view.frames] == [1, 9, 2, 9, 3, 9]


def test_one_of_several_answers_that_is_passed_on_is_no_reason_to_tell_orders_apart() -> None:
    views = {
        canonical(SESSION, [*(received(party, FRAMES[party]) for party in order), sent(9, FRAMES[1])])
        for order in itertools.permutations(FRAMES)
    }
    assert len(views) == 1


def test_what_is_sent_stays_where_it_is() -> None:
    frames = [received(2, FRAMES[2]), sent(1, b"reply"), received(1, FRAMES[1]), sent(2, b"another")]
    assert canonical(SESSION, frames).frames == tuple(frames)
    phases = [received(2, FRAMES[2], "first"), received(1, FRAMES[1], "second")]
    assert canonical(SESSION, phases).frames == tuple(phases)
