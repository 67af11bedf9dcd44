"""What a client that refuses sums can make the server keep: nothing beyond its own few messages."""

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError, SumRefused
from protocols.session.control import MAX_REFUSAL_BYTES, RefuseShares
from protocols.sums.secagg.messages import MaskedInput
from tests.support.conversation_ends import ONE, PAST, ROUND, SESSION, Ends


def test_a_refusal_that_names_more_than_anybody_has_neighbours_is_no_message() -> None:
    crowd = RefuseShares("rows", "no", list(range(1, MAX_REFUSAL_BYTES)))
    with pytest.raises(DecodeError, match="exceeds the limit"):
        wire.decode(wire.encode(crowd, SESSION, ROUND), session=SESSION)


def test_a_refusal_ends_the_sum_that_is_awaited_and_says_whose_words_it_was() -> None:
    ends = Ends()
    ends.say(ONE, RefuseShares("rows", "they do not\x1b open", [2, 3]))
    with pytest.raises(SumRefused, match="client 1: they do not  open") as told:
        ends.server.receive(ONE, MaskedInput, ROUND, PAST, "rows")
    assert (told.value.by, told.value.of) == (ONE, (2, 3))


def test_a_refusal_of_another_sum_than_the_awaited_one_ends_nothing() -> None:
    ends = Ends()
    ends.say(ONE, RefuseShares("valid", "no", [2]))
    ends.say(ONE, RefuseShares("rows", "no", [3]))
    with pytest.raises(SumRefused) as told:
        ends.server.receive(ONE, MaskedInput, ROUND, PAST, "rows")
    assert told.value.of == (3,)
