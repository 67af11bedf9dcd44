"""The server's running sum: it takes each participant's input once and shows nothing before the last."""

import numpy as np
import pytest
from sessions import parties

from protocols.errors import PeerMisbehaved, UnexpectedMessage
from protocols.identifiers import PartyId
from protocols.primitives.group import Ring
from protocols.secagg.messages import AdvertiseKeys, MaskedInput
from protocols.secagg.server import MaskedSum, directory_of

ONE, TWO, THREE = parties(1, 2, 3)


def masked(*entries: int, purpose: str = "rows", dtype: str = "<u8") -> MaskedInput:
    return MaskedInput(purpose, np.array(entries, dtype=dtype))


def running() -> MaskedSum:
    begun = MaskedSum(Ring(64), 2, "rows", [ONE, TWO])
    begun.add(ONE, masked(1, 2**64 - 1))
    return begun


def test_inputs_are_added_in_the_ring() -> None:
    begun = running()
    begun.add(TWO, masked(5, 3))
    assert begun.total().tolist() == [6, 2]


def test_there_is_no_total_before_the_last_input() -> None:
    begun = MaskedSum(Ring(64), 2, "rows", [ONE, TWO])
    with pytest.raises(UnexpectedMessage, match="2 participants"):
        begun.total()
    begun.add(ONE, masked(1, 1))
    with pytest.raises(UnexpectedMessage, match="1 participants"):
        begun.total()


@pytest.mark.parametrize("party", [PartyId(0), ONE, THREE], ids=["the server", "twice", "no participant"])
def test_a_foreign_or_second_input_is_refused(party: PartyId) -> None:
    begun = running()
    with pytest.raises(UnexpectedMessage, match=f"client {party}"):
        begun.add(party, masked(7, 7))
    begun.add(TWO, masked(0, 0))
    assert begun.total().tolist() == [1, 2**64 - 1]


@pytest.mark.parametrize(
    "wrong",
    [
        masked(7),
        masked(7, 7, 7),
        masked(),
        masked(7, 7, dtype="<u4"),
        masked(7, 7, 7, 7, dtype="<u4"),  # as many bytes
        masked(7, 7, purpose="counts"),
        masked(7, 7, purpose=""),
    ],
    ids=["short", "long", "empty", "ring", "ring, same size", "purpose", "no purpose"],
)
def test_an_input_to_another_sum_is_refused_and_not_added(wrong: MaskedInput) -> None:
    begun = running()
    with pytest.raises(PeerMisbehaved, match="client 2"):
        begun.add(TWO, wrong)
    begun.add(TWO, masked(0, 0))
    assert begun.total().tolist() == [1, 2**64 - 1]


def test_the_directory_holds_what_was_advertised() -> None:
    keys = {party: bytes([party]) * 32 for party in (THREE, ONE)}
    directory = directory_of({party: AdvertiseKeys(key) for party, key in keys.items()})
    assert directory.mask_keys == {1: b"\x01" * 32, 3: b"\x03" * 32}
    assert list(directory.mask_keys) == [1, 3]
