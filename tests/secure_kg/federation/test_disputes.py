"""The server goes on without a set of clients that has one of each pair in dispute, and drives nobody out for good."""

from protocols.foundation.identifiers import PartyId
from secure_kg.federation.server.disputes import AWAY, Disputes

ALL = frozenset(map(PartyId, range(1, 6)))
ONE, TWO, THREE, FOUR, FIVE = sorted(ALL)


def test_nobody_is_left_out_without_a_dispute() -> None:
    assert Disputes().left_out(1, ALL, 2) == frozenset()


def test_whoever_cheats_two_goes_itself_and_both_come_back() -> None:
    disputes = Disputes()
    disputes.note(3, TWO, [FOUR])
    assert disputes.left_out(4, ALL, 2) == {TWO}
    disputes.note(4, FIVE, [FOUR])
    assert disputes.left_out(5, ALL, 2) == {FOUR}


def test_whoever_accuses_several_goes_itself() -> None:
    disputes = Disputes()
    disputes.note(3, TWO, [ONE, THREE, FOUR, FIVE])
    assert disputes.left_out(4, ALL, 2) == {TWO}


def test_of_a_lone_pair_the_two_are_left_out_in_turn_for_longer_each_time() -> None:
    disputes, now, away = Disputes(), 3, AWAY
    for left_out in (TWO, FOUR, TWO, FOUR):
        disputes.note(now, TWO, [FOUR])
        assert disputes.left_out(now + 1, ALL, 2) == disputes.left_out(now + away, ALL, 2) == {left_out}
        now, away = now + away + 1, 2 * away
        assert disputes.left_out(now, ALL, 2) == frozenset()


def test_who_accuses_whom_makes_no_difference_to_whose_turn_it_is() -> None:
    """Else the one whose turn it is would refuse first, and stay."""
    disputes = Disputes()
    disputes.note(1, TWO, [FOUR])
    disputes.note(AWAY + 2, FOUR, [TWO])
    assert disputes.left_out(AWAY + 3, ALL, 2) == {FOUR}


def test_an_earlier_dispute_with_others_speaks_against_a_client() -> None:
    disputes = Disputes()
    disputes.note(1, TWO, [FOUR])
    late = 1 + AWAY + 1
    disputes.note(late, FIVE, [FOUR])
    assert disputes.left_out(late + 1, ALL, 2) == {FOUR}


def test_nobody_is_left_out_where_too_few_would_be_left() -> None:
    disputes = Disputes()
    disputes.note(3, TWO, [FOUR])
    assert disputes.left_out(4, ALL, 5) == frozenset()
    assert disputes.left_out(4, ALL, 4) == {TWO}


def test_separate_pairs_lose_one_each() -> None:
    disputes = Disputes()
    disputes.note(3, TWO, [FOUR])
    disputes.note(4, ONE, [FIVE])
    assert disputes.left_out(5, ALL, 2) == {ONE, TWO}


def test_a_client_that_accuses_itself_is_in_no_dispute() -> None:
    disputes = Disputes()
    disputes.note(3, TWO, [TWO])
    assert disputes.left_out(4, ALL, 2) == frozenset()
