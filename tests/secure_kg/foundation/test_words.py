"""Numbers and clients as people write them."""

from secure_kg.foundation.words import counted, in_rounds, named_clients, seconds_text


def test_one_is_not_several() -> None:
    assert [counted(number, "sum") for number in (0, 1, 2, 1200)] == ["0 sums", "1 sum", "2 sums", "1,200 sums"]
    assert named_clients({4}) == "client 4"
    assert named_clients({10, 9}) == "clients 9, 10"


def test_rounds() -> None:
    told = [in_rounds(*span) for span in ((0, 0), (3, 3), (2, 6), (0, 4))]
    assert told == ["set-up", "round 3", "rounds 2 to 6", "set-up to round 4"]


def test_time_is_told_in_two_words() -> None:
    assert [seconds_text(value) for value in (0.04, 59, 61, 7300)] == ["0.0 s", "59 s", "1 min 1 s", "2 h 1 min"]
