"""Messages that come before they are awaited: kept for their own sum, a few of each party, and of no other kind."""

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation.errors import DeadlineExpired, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, RoundId
from protocols.session.ahead import MOST_AHEAD
from protocols.session.conversation import Back
from protocols.sums.secagg.messages import AdvertiseKeys, EncryptedShares, ShareKeys
from tests.support.conversation_ends import ONE, PAST, ROUND, TWO, Ends, names

NEXT = RoundId(ROUND + 1)


@pytest.fixture
def ends() -> Ends:
    return Ends()


def advert(purpose: str = "rows", fill: int = 0) -> AdvertiseKeys:
    return AdvertiseKeys(purpose, bytes([fill]) * 32, b"", b"")


def shares(purpose: str = "rows") -> EncryptedShares:
    return EncryptedShares(purpose, {}, {}, {})


def heard(ends: Ends, round_id: RoundId, purpose: str = "rows") -> AdvertiseKeys:
    return ends.server.receive(ONE, AdvertiseKeys, round_id, PAST, purpose)


def test_a_key_of_a_later_round_waits_for_it(ends: Ends) -> None:
    ends.say(ONE, advert(fill=1), round_id=NEXT)
    ends.say(ONE, names("a"))
    assert ends.server.receive(ONE, ClearNames, ROUND, PAST) == names("a")
    assert heard(ends, NEXT) == advert(fill=1)
    with pytest.raises(DeadlineExpired):
        heard(ends, NEXT)


def test_a_key_of_another_sum_of_the_round_waits_for_that(ends: Ends) -> None:
    ends.say(ONE, advert("rows", 1))
    ends.say(ONE, advert("holders", 2))
    assert heard(ends, ROUND, "holders") == advert("holders", 2)
    assert heard(ends, ROUND, "rows") == advert("rows", 1)


def test_what_was_kept_of_one_client_is_not_taken_for_anothers(ends: Ends) -> None:
    ends.say(ONE, advert(fill=1), round_id=NEXT)
    ends.say(ONE, names("a"))
    ends.server.receive(ONE, ClearNames, ROUND, PAST)
    with pytest.raises(DeadlineExpired):
        ends.server.receive(TWO, AdvertiseKeys, NEXT, PAST, "rows")


def test_a_second_key_for_the_same_sum_is_refused(ends: Ends) -> None:
    ends.say(ONE, advert(fill=1), round_id=NEXT)
    ends.say(ONE, advert(fill=2), round_id=NEXT)
    with pytest.raises(UnexpectedMessage, match=r"AdvertiseKeys of round 6 where ClearNames of round 5"):
        ends.server.receive(ONE, ClearNames, ROUND, PAST)


def test_only_a_few_are_kept(ends: Ends) -> None:
    for number in range(MOST_AHEAD + 1):
        ends.say(ONE, advert(f"sum {number}"), round_id=NEXT)
    with pytest.raises(UnexpectedMessage, match="AdvertiseKeys"):
        ends.server.receive(ONE, ClearNames, ROUND, PAST)


def test_keys_of_rounds_that_are_over_make_room(ends: Ends) -> None:
    for round_id in (ROUND, NEXT):
        for number in range(MOST_AHEAD):
            ends.say(ONE, advert(f"sum {number}"), round_id=round_id)
        ends.say(ONE, names("a"), round_id=round_id)
        assert ends.server.receive(ONE, ClearNames, round_id, PAST) == names("a")


def test_what_a_dropout_has_sent_ahead_is_dropped(ends: Ends) -> None:
    ends.say(ONE, advert(fill=1), round_id=NEXT)
    ends.say(ONE, names("a"))
    ends.server.receive(ONE, ClearNames, ROUND, PAST)
    ends.say(ONE, Back())
    assert ends.server.came_back(ONE)
    ends.say(ONE, advert(fill=2), round_id=NEXT)
    assert heard(ends, NEXT) == advert(fill=2)


def test_nothing_else_may_come_ahead(ends: Ends) -> None:
    ends.say(ONE, ShareKeys("rows", {}, bytes(32), b"", b""), round_id=NEXT)
    with pytest.raises(UnexpectedMessage, match="ShareKeys of round 6"):
        ends.server.receive(ONE, ClearNames, ROUND, PAST)


def test_nobody_is_made_to_keep_what_only_the_other_side_has_a_use_for(ends: Ends) -> None:
    ends.say(ONE, shares(), round_id=NEXT)
    with pytest.raises(UnexpectedMessage, match="EncryptedShares of round 6"):
        ends.server.receive(ONE, ClearNames, ROUND, PAST)
    client = ends.clients[ONE]
    client.begin(ROUND, "rows")
    ends.server.send(ONE, advert(), ROUND)
    with pytest.raises(UnexpectedMessage, match="AdvertiseKeys of round 5"):
        client.receive(SERVER, ClearNames, ROUND, PAST)


def test_a_client_keeps_shares_of_a_sum_that_it_has_begun(ends: Ends) -> None:
    client = ends.clients[ONE]
    client.begin(ROUND, "rows")
    ends.server.send(ONE, shares(), ROUND)
    ends.server.send(ONE, names("a"), ROUND)
    assert client.receive(SERVER, ClearNames, ROUND, PAST) == names("a")
    assert client.receive(SERVER, EncryptedShares, ROUND, PAST, "rows") == shares()


def test_shares_of_a_sum_that_is_over_are_passed_by(ends: Ends) -> None:
    """A client that has refused a sum of its round listens to whatever comes next."""
    client = ends.clients[ONE]
    client.begin(ROUND, "holders", "rows")
    ends.server.send(ONE, shares(), ROUND)
    ends.server.send(ONE, names("a"), NEXT)
    assert client.receive_any(SERVER, ROUND, PAST) == (NEXT, names("a"))


@pytest.mark.parametrize("round_id", [ROUND, NEXT])
def test_a_client_takes_no_shares_of_a_sum_that_it_has_not_begun(ends: Ends, round_id: RoundId) -> None:
    client = ends.clients[ONE]
    client.begin(ROUND, "rows")
    ends.server.send(ONE, shares("valid"), round_id)
    with pytest.raises(UnexpectedMessage, match="EncryptedShares"):
        client.receive(SERVER, ClearNames, ROUND, PAST)
    ends.server.send(ONE, shares("valid"), round_id)
    assert client.receive_any(SERVER, ROUND, PAST) == (round_id, shares("valid"))


def test_shares_that_come_twice_are_refused(ends: Ends) -> None:
    client = ends.clients[ONE]
    client.begin(ROUND, "rows")
    for _ in range(2):
        ends.server.send(ONE, shares(), ROUND)
    with pytest.raises(UnexpectedMessage, match="EncryptedShares"):
        client.receive(SERVER, ClearNames, ROUND, PAST)


def test_a_message_sent_ahead_begins_no_sum(ends: Ends) -> None:
    client = ends.clients[ONE]
    client.begin(ROUND, "rows")
    client.send_ahead(SERVER, advert(), NEXT)
    assert client.begun(ROUND, "rows")
    assert not client.begun(NEXT, "rows")
    ends.say(ONE, names("a"))
    assert ends.server.receive(ONE, ClearNames, ROUND, PAST) == names("a")
    assert heard(ends, NEXT) == advert()
