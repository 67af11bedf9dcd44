"""Every message type of `protocols/` with a strategy that makes it; `test_wire` fails if one is missing."""

import importlib
import pkgutil
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vectors import unhex, vectors

import protocols
from protocols import wire
from protocols.conversation import MAX_REASON, Abort, Failed
from protocols.plain.sums import ClearInput
from protocols.plain.union import ClearNames, ClearPositions
from protocols.secagg.messages import MAX_PURPOSE, AdvertiseKeys, KeyDirectory, MaskedInput

_KEY = st.binary(min_size=32, max_size=32)
_PURPOSE = st.text(max_size=MAX_PURPOSE)


@wire.message(0xFF01)
class AnyArray(wire.Message, frozen=True):
    """A message of the tests: an array on which only the wire itself puts limits."""

    value: np.ndarray[Any, Any]


def _vector(*dtypes: str) -> st.SearchStrategy[npt.NDArray[Any]]:
    return st.sampled_from(dtypes).flatmap(lambda dtype: hnp.arrays(dtype, st.integers(0, 6)))


STRATEGIES: dict[type[wire.Message], st.SearchStrategy[wire.Message]] = {
    Failed: st.builds(Failed, st.text(max_size=MAX_REASON)),
    Abort: st.builds(Abort, st.text(max_size=MAX_REASON)),
    AdvertiseKeys: st.builds(AdvertiseKeys, _KEY),
    KeyDirectory: st.builds(KeyDirectory, st.dictionaries(st.integers(-(2**63), 2**64 - 1), _KEY, max_size=4)),
    MaskedInput: st.builds(MaskedInput, _PURPOSE, _vector("<u4", "<u8")),
    ClearInput: st.builds(ClearInput, _PURPOSE, _vector("<u4", "<u8")),
    ClearNames: st.builds(ClearNames, st.lists(st.text(max_size=10), unique=True, max_size=5)),
    ClearPositions: st.builds(ClearPositions, st.integers(-(2**63), 2**63 - 1), _vector("<i8")),
}
any_message = st.one_of(list(STRATEGIES.values()))


def registered() -> set[type[wire.Message]]:
    """The message types that the modules of `protocols/` register; importing all but `mpi` brings them in."""
    for module in pkgutil.walk_packages(protocols.__path__, "protocols."):
        if not module.name.endswith(".mpi"):
            importlib.import_module(module.name)
    return {kind for kind in wire._NUMBERS if kind.__module__.split(".")[0] == "protocols"}


def _field(value: Any) -> Any:
    if isinstance(value, dict) and "bytes" in value:
        return unhex(value["bytes"])
    if isinstance(value, dict) and "map" in value:
        return {int(party): unhex(key) for party, key in value["map"].items()}
    if isinstance(value, dict):
        return np.array(value["values"], dtype=value["dtype"]).reshape(value["shape"])
    return value


def written_frames() -> list[tuple[wire.Message, int, bytes]]:
    """Message, round and frame of `wire_frames.json`: one of every type."""
    by_name = {kind.__name__: kind for kind in STRATEGIES}
    return [
        (by_name[case["message"]](*map(_field, case["fields"])), case["round"], unhex(case["frame"]))
        for case in vectors("wire_frames")["frames"]
    ]


def same(left: object, right: object) -> bool:
    """Equality down to the bits of arrays, so that NaN equals itself and 0.0 differs from -0.0."""
    if isinstance(left, wire.Message) and type(left) is type(right):
        return all(same(getattr(left, name), getattr(right, name)) for name in left.__struct_fields__)
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
    return type(left) is type(right) and bool(left == right)
