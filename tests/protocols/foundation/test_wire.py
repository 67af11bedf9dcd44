"""What is encoded comes back bit for bit, and the bytes are those the format describes."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from protocols.alignment.plain import ClearNames, ClearUnion
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import RoundId, SessionId
from protocols.lookups.messages import NamesTotal
from protocols.scores.crypten.messages import AnswerShares, GroupAnswer
from protocols.scores.encrypted.messages import BfvScores, BfvTotal, PaillierScores, PaillierTotal
from protocols.scores.messages import AskScores, ScoresTotal
from protocols.scores.plain import ClearQueries, ClearScores
from protocols.scores.topk.messages import DealtProduct, MaskedTable, SelectionRelay, SelectionStep, SharesForAsker
from protocols.session.control import RefuseShares
from protocols.session.conversation import Failed
from protocols.session.messages import ChannelDirectory
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput, Survivors
from protocols.sums.totals import SumTotal
from tests.support.messages_of_protocols import STRATEGIES, AnyArray, any_message, registered, same, written_frames
from tests.support.vectors import unhex, vectors

SESSION = SessionId(bytes(range(16)))
ROUND = RoundId(7)
DTYPES = ["u1", "<u4", "<u8", "<i8", "<f4", "<f8"]


def there_and_back(message: wire.Message) -> wire.Message:
    return wire.decode(wire.encode(message, SESSION, ROUND), session=SESSION).message


# --- messages -------------------------------------------------------------------------------------------------------


def test_every_message_type_has_a_strategy_and_a_written_frame() -> None:
    assert set(STRATEGIES) == registered()
    assert {type(message) for message, _, _ in written_frames()} == registered()


@given(any_message, st.binary(min_size=16, max_size=16).map(SessionId), st.integers(0, 2**32 - 1).map(RoundId))
@settings(deadline=None, max_examples=200)
def test_messages_come_back(message: wire.Message, session: SessionId, round_id: RoundId) -> None:
    frame = wire.encode(message, session, round_id)
    for copy in (frame, bytes(frame), memoryview(frame)):
        envelope = wire.decode(copy, session=session)
        assert (envelope.session, envelope.round) == (session, round_id)
        assert same(envelope.message, message)
    assert wire.encode(envelope.message, session, round_id) == frame


@pytest.mark.parametrize("case", written_frames(), ids=lambda case: type(case[0]).__name__)
def test_frames_are_those_written_down(case: tuple[wire.Message, int, bytes]) -> None:
    message, round_id, frame = case
    assert unhex(vectors("wire_frames")["session"]) == SESSION
    assert wire.encode(message, SESSION, RoundId(round_id)) == frame
    envelope = wire.decode(frame, session=SESSION)
    assert envelope.round == round_id
    assert same(envelope.message, message)


# --- arrays ---------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "as is": lambda array: array,
    "transposed": lambda array: array.T,
    "column by column": np.asfortranarray,
    "backwards": lambda array: array[::-1] if array.ndim else array,
    "every other": lambda array: np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array,
    "stretched": lambda array: np.broadcast_to(array, (2, *array.shape)) if array.ndim < 4 else array,
    "unaligned": lambda array: np.frombuffer(b"\0" + array.tobytes(), dtype=array.dtype, offset=1).reshape(array.shape),
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "big-endian, transposed": lambda array: array.astype(array.dtype.newbyteorder(">")).T,
}
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
)


@given(arrays, st.sampled_from(sorted(LAYOUTS)))
@settings(deadline=None, max_examples=300)
def test_arrays_come_back_whatever_their_memory_looks_like(array: npt.NDArray[Any], layout: str) -> None:
    sent = LAYOUTS[layout](array)
    received = there_and_back(AnyArray(sent))
    assert isinstance(received, AnyArray)
    value = received.value
    expected = np.ascontiguousarray(sent.astype(sent.dtype.newbyteorder("<"))).reshape(sent.shape)
    assert same(value, expected)
    # Nothing else may hold on to the frame, and arithmetic in place must work on what was received.
    assert value.flags.c_contiguous
    assert value.flags.aligned
    assert value.flags.writeable
    assert value.base is None or value.base.flags.owndata


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 5), (2, 3), (2, 0, 2), (1, 2, 3), (0, 0, 0, 0), (2, 1, 3, 2)])
def test_every_dtype_in_every_number_of_axes(dtype: str, shape: tuple[int, ...]) -> None:
    sent = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    received = there_and_back(AnyArray(sent))
    assert isinstance(received, AnyArray)
    assert same(received.value, sent)


def test_a_received_array_shares_no_memory_with_its_frame() -> None:
    frame = wire.encode(AnyArray(np.arange(5, dtype="<i8")), SESSION, ROUND)
    received = wire.decode(frame, session=SESSION).message
    assert isinstance(frame, bytearray)
    frame[:] = bytes(len(frame))
    assert isinstance(received, AnyArray)
    assert received.value.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, dtype=bool),
        np.zeros(2, dtype="<i4"),
        np.zeros(2, dtype="<i2"),
        np.zeros(2, dtype="<f2"),
        np.zeros(2, dtype="<c8"),
        np.zeros(2, dtype="<M8[s]"),
        np.zeros(2, dtype=[("a", "<u4")]),
        np.array(["text"]),
        np.array([object()]),
        np.zeros((1, 1, 1, 1, 1)),
    ],
    ids=lambda array: f"{array.dtype} {array.ndim}",
)
def test_arrays_that_do_not_travel_are_refused_by_the_sender(array: npt.NDArray[Any]) -> None:
    with pytest.raises(DecodeError, match="does not travel"):
        wire.encode(AnyArray(array), SESSION, ROUND)


# --- the sender's own mistakes --------------------------------------------------------------------------------------


def test_a_sender_is_told_of_frames_nobody_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    message = Failed("x" * 100)
    size = len(wire.encode(message, SESSION, ROUND))
    for round_id in (-1, 2**32):
        with pytest.raises(DecodeError, match="round"):
            wire.encode(message, SESSION, RoundId(round_id))
    for session in (b"", bytes(15), bytes(17)):
        with pytest.raises(DecodeError, match="session"):
            wire.encode(message, SessionId(session), ROUND)
    limits: dict[type[wire.Message], int] = {**wire._LIMITS, Failed: size}
    monkeypatch.setattr(wire, "_LIMITS", limits)
    frame = wire.encode(message, SESSION, ROUND)
    assert len(frame) == size
    assert wire.decode(frame, session=SESSION).message == message
    limits[Failed] = size - 1
    with pytest.raises(DecodeError, match=f"message of {size} bytes exceeds the limit of {size - 1}"):
        wire.encode(message, SESSION, ROUND)
    with pytest.raises(DecodeError, match=f"Failed of {size} bytes exceeds the limit of {size - 1}"):
        wire.decode(frame, session=SESSION)


def test_every_type_has_its_largest_frame() -> None:
    arrays = {MaskedInput, SumTotal, UnionPlaces, ClearInput, ClearUnion}
    ciphertexts = {PaillierScores, PaillierTotal, BfvScores, BfvTotal}
    words = {AnswerShares, GroupAnswer}
    shares = {SelectionStep, SelectionRelay, SharesForAsker, MaskedTable, DealtProduct}
    scores = {ScoresTotal, NamesTotal, ClearScores} | shares
    limits = dict.fromkeys(arrays | ciphertexts | words | scores, wire.MAX_FRAME_BYTES)
    limits |= {ClearNames: 1 << 26, AskScores: 1 << 24, ClearQueries: 1 << 21, RefuseShares: 1 << 14}
    assert {kind: wire._LIMITS[kind] for kind in registered()} == {
        kind: limits.get(kind, 1 << 22) for kind in registered()
    }
    assert wire.SMALL_FRAME_BYTES == 1 << 22


@pytest.mark.parametrize(("kind", "limit"), [(ChannelDirectory, 1 << 22), (ClearNames, 1 << 26)], ids=["map", "list"])
def test_a_frame_that_is_too_large_for_its_type_is_not_decoded(kind: type[wire.Message], limit: int) -> None:
    """Its body is never looked at: bytes that are no message at all are refused for their number alone."""

    def framed(size: int) -> bytearray:
        frame = bytearray(size)
        wire.HEADER.pack_into(frame, 0, wire.VERSION, 0, wire._NUMBERS[kind], ROUND, SESSION, size - wire.HEADER.size)
        return frame

    with pytest.raises(DecodeError, match=f"{kind.__name__} of {limit + 1} bytes exceeds the limit of {limit}"):
        wire.decode(framed(limit + 1), session=SESSION)
    with pytest.raises(DecodeError) as refused:
        wire.decode(framed(limit), session=SESSION)
    assert "exceeds" not in str(refused.value)


def test_messages_up_to_the_limit_of_their_type_travel() -> None:
    small = [f"{number:0100}" for number in range(50_000)]
    assert len(wire.encode(ClearNames(small), SESSION, ROUND)) > wire.SMALL_FRAME_BYTES
    assert same(there_and_back(ClearNames(small)), ClearNames(small))
    with pytest.raises(DecodeError, match="exceeds the limit of 67108864"):
        wire.encode(ClearNames(["x" * (1 << 26)]), SESSION, ROUND)
    many = Survivors("rows", list(range(1 << 32, (1 << 32) + 500_000)))
    with pytest.raises(DecodeError, match="exceeds the limit of 4194304"):
        wire.encode(many, SESSION, ROUND)
    vector = np.zeros(1 << 20, dtype="<u8")
    assert same(there_and_back(ClearInput("rows", vector)), ClearInput("rows", vector))


def test_a_message_without_a_number_does_not_travel() -> None:
    class Unnumbered(wire.Message, frozen=True):
        reason: str

    with pytest.raises(TypeError, match="Unnumbered"):
        wire.encode(Unnumbered("x"), SESSION, ROUND)


def test_a_value_that_is_no_array_does_not_travel_in_its_place() -> None:
    with pytest.raises(TypeError, match="does not travel"):
        wire.encode(AnyArray(object()), SESSION, ROUND)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [0, -1, 2**16, 0x0001, 0x0116])
def test_numbers_are_sixteen_bits_and_given_once(kind: int) -> None:
    class Another(wire.Message, frozen=True):
        pass

    with pytest.raises(TypeError, match="out of range or taken"):
        wire.message(kind)(Another)


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Failed("x").reason = "y"  # type: ignore[misc]


# --- arrays that stand in their frame ---------------------------------------------------------------------------------


def standing(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = wire.array_in_frame(len(values), values.dtype)
    array[:] = values
    return array


@pytest.mark.parametrize("dtype", ["<u4", "<u8"])
@pytest.mark.parametrize("entries", [0, 1, 5, 61, 62, 8190, 70000])
def test_an_array_that_stands_in_its_frame_is_sent_without_a_copy(entries: int, dtype: str) -> None:
    values = np.arange(entries, dtype=dtype)
    array = standing(values)
    frame = wire.encode(MaskedInput("rows", array, bytes(32)), SESSION, ROUND)
    assert bytes(frame) == bytes(wire.encode(MaskedInput("rows", values, bytes(32)), SESSION, ROUND))
    assert entries == 0 or np.shares_memory(np.frombuffer(frame, dtype=np.uint8), array)
    again = wire.encode(MaskedInput("rows", array, bytes(32)), SESSION, ROUND)
    assert bytes(again) == bytes(frame)
    assert not array.size or array.ctypes.data % 8 == 0


@pytest.mark.parametrize("change", ["a part", "many contributors", "turned"])
def test_what_has_no_room_around_it_is_copied(change: str) -> None:
    array = standing(np.arange(100, dtype="<u4"))
    sent = {"a part": array[1:], "turned": array[::-1]}.get(change, array)
    contributors = list(range(1, 600 if change == "many contributors" else 3))
    frame = wire.encode(SumTotal("rows", 1, contributors, sent), SESSION, ROUND)
    assert isinstance(frame, bytearray)
    assert bytes(frame) == bytes(wire.encode(SumTotal("rows", 1, contributors, sent.copy()), SESSION, ROUND))


def test_large_arrays_are_copied_once() -> None:
    values = np.zeros(1 << 20, dtype="<u8")
    tracemalloc.start()
    try:
        wire.encode(MaskedInput("rows", values, bytes(32)), SESSION, ROUND)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert values.nbytes < peak < 1.1 * values.nbytes
