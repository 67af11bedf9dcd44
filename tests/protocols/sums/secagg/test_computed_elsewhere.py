"""What a client has computed on another machine it does not give to a sum that may have been opened before."""

import pytest

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.sums.secagg.openings import Opening, Openings, opened_before
from tests.support.openings import opening

ONE = PartyId(1)
ALL = [PartyId(1), PartyId(2)]
RUN = "a run"


def opened(*rounds: int, on: str, purpose: str = "rows", state: bytes = b"") -> Openings:
    """The record of a session on this machine, as the next session reads it."""
    known: list[Opening] = []
    session = Openings((), known.append, RUN)
    session.computed = on
    for number in rounds:
        session.open(opening(number, purpose, ALL, c1=state))
    return Openings(known, run=RUN, moving=["valid"])


def test_the_same_machine_opens_again_and_another_one_gives_no_input() -> None:
    record = opened(3, 4, on="a GPU")
    record.computed = "a GPU"
    record.may_come(opening(4, "rows", ALL), ONE)
    record.computed = "a CPU"
    with pytest.raises(SumAbandoned, match="computed on another machine; the difference would be what one") as refused:
        record.may_come(opening(4, "rows", ALL), ONE)
    assert opened_before(str(refused.value)) == (4, "rows")


def test_the_round_after_the_last_one_may_have_been_opened_by_others() -> None:
    record = opened(3, 4, on="a GPU")
    record.computed = "a CPU"
    for number, purpose in ((2, "rows"), (5, "rows"), (5, "valid")):
        with pytest.raises(SumAbandoned, match="may have been opened before, computed on another machine") as refused:
            record.may_come(opening(number, purpose, ALL), ONE)
        assert opened_before(str(refused.value)) is None  # it does not say that it was
    record.may_come(opening(6, "rows", ALL), ONE)
    record.open(opening(6, "rows", ALL))
    record.may_come(opening(7, "rows", ALL), ONE)
    with pytest.raises(SumAbandoned, match="another machine"):  # whatever was opened since
        record.may_come(opening(4, "rows", ALL), ONE)


def test_results_of_the_same_rows_are_not_told_again_under_another_name() -> None:
    record = opened(4, on="a GPU", purpose="valid", state=b"mine")
    record.computed = "a CPU"
    with pytest.raises(SumAbandoned, match="as valid of 4, opened before, computed on another machine"):
        record.may_come(opening(9, "valid", ALL, c1=b"mine"), ONE)
    record.may_come(opening(9, "valid", ALL, c1=b"moved", c2=b"mine"), ONE)  # its own input is new


def test_names_and_parties_that_say_nothing_are_as_always() -> None:
    record = opened(0, 4, on="a GPU")
    record.computed = "a CPU"
    record.may_come(opening(int(SETUP), "names", ALL), ONE)  # the same on every machine
    record.computed = ""
    record.may_come(opening(4, "rows", ALL), ONE)
    older = opened(4, on="")
    older.computed = "a CPU"
    older.may_come(opening(4, "rows", ALL), ONE)
