"""Every message type of `protocols/` with a strategy that makes it; `test_wire` fails if one is missing."""

import importlib
import pkgutil
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import protocols
from protocols.alignment.plain import TAG_BYTES, ClearNames, ClearUnion
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.lookups.messages import MOST_SIZES, NamesTotal, NextStep
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.identity import SIGNATURE_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.primitives.shamir import SHARE_BYTES
from protocols.scores.crypten.messages import (
    DIGEST_BYTES,
    RING_KEY_BYTES,
    AnswerShares,
    GroupAnswer,
    GroupFormed,
    JoinGroup,
)
from protocols.scores.encrypted.messages import (
    BfvKey,
    BfvScores,
    BfvTotal,
    PaillierKey,
    PaillierScores,
    PaillierTotal,
)
from protocols.scores.messages import AskScores, BatchServed, ScoresAsked, ScoresTotal
from protocols.scores.plain import ClearQueries, ClearScores
from protocols.scores.topk.messages import (
    MOST_NUMBERS,
    DealtProduct,
    DealtSeed,
    MaskedTable,
    SelectionRelay,
    SelectionStep,
    SharesForAsker,
)
from protocols.session.control import RefuseShares
from protocols.session.conversation import MAX_PURPOSE, MAX_REASON, Abandon, Abort, Back, Failed, LeaveOut, Regroup
from protocols.session.group_key import DrawGroupKey, SealedGroupKey, SealedGroupKeys
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
    PEERS_BYTES,
    SEALED_SHARES_BYTES,
    STATE_BYTES,
    AdvertiseKeys,
    EncryptedShares,
    EncryptedSharesWithoutStates,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    ShareKeysWithoutState,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.totals import SumTotal
from tests.support.vectors import unhex, vectors


def _exactly(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def _by_client(entry: st.SearchStrategy[bytes]) -> st.SearchStrategy[dict[int, bytes]]:
    return st.dictionaries(st.integers(1, 2**64 - 1), entry, max_size=4)


_KEY = _exactly(32)
_SIGNATURE = _exactly(SIGNATURE_BYTES)
_SIGNATURE_OR_NONE = st.just(b"") | _SIGNATURE
_SEALED = _by_client(_exactly(SEALED_SHARES_BYTES))
_SHARES = _by_client(_exactly(SHARE_BYTES))
_SEALED_KEY = _exactly(KEY_BYTES + OVERHEAD_BYTES)
_STATE_OR_NONE = st.sampled_from([b"", bytes(STATE_BYTES), bytes(range(STATE_BYTES)), bytes(range(2 * STATE_BYTES))])
_PARTY = st.integers(1, 2**64 - 1)
_PURPOSE = st.text(max_size=MAX_PURPOSE)
_REASON = st.text(max_size=MAX_REASON)


@wire.message(0xFF01)
class AnyArray(wire.Message, frozen=True):
    """A message of the tests: an array on which only the wire itself puts limits."""

    value: np.ndarray[Any, Any]


def _vector(*dtypes: str) -> st.SearchStrategy[npt.NDArray[Any]]:
    return st.sampled_from(dtypes).flatmap(lambda dtype: hnp.arrays(dtype, st.integers(0, 6)))


def _unmask_shares(purpose: str, mask_key_shares: dict[int, bytes], seed_shares: dict[int, bytes]) -> UnmaskShares:
    """No client is in both."""
    others = {party: share for party, share in seed_shares.items() if party not in mask_key_shares}
    return UnmaskShares(purpose, mask_key_shares, others)


def _key_directory(
    purpose: str, mask_keys: dict[int, bytes], state: bytes, signatures: dict[int, bytes]
) -> KeyDirectory:
    """A state for every key."""
    return KeyDirectory(purpose, mask_keys, dict.fromkeys(mask_keys, state), signatures)


def _encrypted_shares(
    purpose: str, sealed: dict[int, bytes], state: bytes, signatures: dict[int, bytes]
) -> EncryptedShares:
    """A state for every client's shares."""
    return EncryptedShares(purpose, sealed, dict.fromkeys(sealed, state), signatures)


def _union_places(purpose: str, places: npt.NDArray[np.uint32], more: int) -> UnionPlaces:
    """A size beyond every place, and none without places."""
    size = int(places.max()) % 2**29 + 1 + more if len(places) else 0
    return UnionPlaces(purpose, size, places % np.uint32(max(1, size)))


def _group_answer(purpose: str, participants: list[int], sealed: bytes) -> GroupAnswer:
    """Shares of all participants but the first."""
    return GroupAnswer(purpose, participants, dict.fromkeys(participants[1:], sealed))


_RING_KEY = _exactly(RING_KEY_BYTES)
_PARTICIPANTS = st.sets(_PARTY, min_size=2, max_size=4).map(sorted)
_ADDRESS = st.ip_addresses(v=4).map(str)
_PORT = st.integers(1, 2**16 - 1)
_WORDS = st.integers(1, 4).flatmap(lambda words: _exactly(DIGEST_BYTES + 8 * words + OVERHEAD_BYTES))

STRATEGIES: dict[type[wire.Message], st.SearchStrategy[wire.Message]] = {
    Failed: st.builds(Failed, _REASON),
    Abort: st.builds(Abort, _REASON),
    Regroup: st.builds(Regroup, _REASON),
    LeaveOut: st.builds(LeaveOut),
    Back: st.builds(Back),
    Abandon: st.builds(Abandon, _PURPOSE, _REASON),
    RefuseShares: st.builds(RefuseShares, _PURPOSE, _REASON, st.sets(_PARTY, min_size=1, max_size=4).map(sorted)),
    AdvertiseChannel: st.builds(AdvertiseChannel, _KEY, _SIGNATURE_OR_NONE),
    ChannelDirectory: st.builds(ChannelDirectory, _by_client(_KEY), _by_client(_SIGNATURE_OR_NONE)),
    AdvertiseKeys: st.builds(AdvertiseKeys, _PURPOSE, _KEY, _STATE_OR_NONE, _SIGNATURE_OR_NONE),
    KeyDirectory: st.builds(_key_directory, _PURPOSE, _by_client(_KEY), _STATE_OR_NONE, _by_client(_SIGNATURE_OR_NONE)),
    ShareKeys: st.builds(ShareKeys, _PURPOSE, _SEALED, _KEY, _STATE_OR_NONE, _SIGNATURE_OR_NONE),
    EncryptedShares: st.builds(_encrypted_shares, _PURPOSE, _SEALED, _STATE_OR_NONE, _by_client(_SIGNATURE_OR_NONE)),
    ShareKeysWithoutState: st.builds(ShareKeysWithoutState, _PURPOSE, _SEALED, _KEY),
    EncryptedSharesWithoutStates: st.builds(EncryptedSharesWithoutStates, _PURPOSE, _SEALED),
    MaskedInput: st.builds(MaskedInput, _PURPOSE, _vector("<u4", "<u8"), _exactly(PEERS_BYTES)),
    Survivors: st.builds(Survivors, _PURPOSE, st.lists(st.integers(-(2**63), 2**64 - 1), max_size=4)),
    SurvivorSignature: st.builds(SurvivorSignature, _PURPOSE, _SIGNATURE),
    SignedSurvivors: st.builds(SignedSurvivors, _PURPOSE, _by_client(_SIGNATURE)),
    UnmaskShares: st.builds(_unmask_shares, _PURPOSE, _SHARES, _SHARES),
    DrawGroupKey: st.builds(DrawGroupKey),
    SealedGroupKeys: st.builds(SealedGroupKeys, _KEY, _by_client(_SEALED_KEY)),
    SealedGroupKey: st.builds(SealedGroupKey, _PARTY, _KEY, _SEALED_KEY),
    SumTotal: st.builds(
        SumTotal, _PURPOSE, st.integers(0, 2**64 - 1), st.sets(_PARTY, max_size=4).map(sorted), _vector("<u4", "<u8")
    ),
    ClearInput: st.builds(ClearInput, _PURPOSE, _vector("<u4", "<u8")),
    ClearNames: st.builds(ClearNames, st.lists(st.text(max_size=10), unique=True, max_size=5)),
    ClearUnion: st.builds(ClearUnion, hnp.arrays("<u1", st.tuples(st.integers(0, 4), st.just(TAG_BYTES)))),
    UnionPlaces: st.builds(_union_places, _PURPOSE, _vector("<u4"), st.integers(0, 2**20)),
    JoinGroup: st.builds(JoinGroup, _PURPOSE, _KEY, _by_client(_RING_KEY), _ADDRESS, _PORT),
    GroupFormed: _PARTICIPANTS.flatmap(
        lambda names: st.builds(
            GroupFormed,
            _PURPOSE,
            st.just(names),
            _KEY,
            st.dictionaries(st.sampled_from(names), _RING_KEY),
            _ADDRESS,
            _PORT,
        )
    ),
    AnswerShares: st.builds(AnswerShares, _PURPOSE, _WORDS),
    GroupAnswer: st.builds(_group_answer, _PURPOSE, _PARTICIPANTS, _WORDS),
}
_CIPHERTEXTS = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4)
_CONTRIBUTORS = st.sets(_PARTY, max_size=4).map(sorted)
STRATEGIES |= {kind: st.builds(kind, _PURPOSE, st.binary(min_size=1, max_size=40)) for kind in (PaillierKey, BfvKey)}
STRATEGIES |= {
    kind: st.builds(kind, _PURPOSE, _CIPHERTEXTS, _exactly(PEERS_BYTES)) for kind in (PaillierScores, BfvScores)
}
STRATEGIES |= {kind: st.builds(kind, _PURPOSE, _CONTRIBUTORS, _CIPHERTEXTS) for kind in (PaillierTotal, BfvTotal)}
_ASKED = st.binary(min_size=OVERHEAD_BYTES + 1, max_size=OVERHEAD_BYTES + 9)
_BYTES, _NUMBER = st.binary(max_size=9), st.integers(0, 2**64 - 1)
STRATEGIES |= {
    AskScores: st.builds(AskScores, _PURPOSE, _by_client(_ASKED)),
    ScoresAsked: st.builds(ScoresAsked, _PURPOSE, _ASKED),
    ScoresTotal: st.builds(ScoresTotal, _PURPOSE, st.sets(_PARTY, max_size=4).map(sorted), _vector("<u4")),
    NextStep: st.builds(
        NextStep,
        st.text(max_size=16),
        st.lists(st.integers(0, 2**32 - 1), max_size=MOST_SIZES),
        st.just(b"") | _exactly(32),
    ),
    NamesTotal: st.builds(NamesTotal, _PURPOSE, st.sets(_PARTY, max_size=4).map(sorted), _vector("<u8")),
    BatchServed: st.builds(BatchServed, _PURPOSE),
    ClearQueries: st.builds(ClearQueries, _PURPOSE, _BYTES),
    ClearScores: st.builds(ClearScores, _PURPOSE, _vector("<u4")),
    DealtSeed: st.builds(DealtSeed, _PURPOSE, _KEY),
    SelectionStep: st.builds(
        SelectionStep, _PURPOSE, _PARTY, st.lists(_NUMBER, max_size=MOST_NUMBERS), _BYTES, _by_client(_BYTES)
    ),
    SelectionRelay: st.builds(SelectionRelay, _PURPOSE, _PARTY, _by_client(_BYTES), _by_client(_BYTES), _BYTES),
    SharesForAsker: st.builds(SharesForAsker, _PURPOSE, _by_client(_BYTES)),
    MaskedTable: st.builds(MaskedTable, _PURPOSE, _PARTY, _BYTES),
    DealtProduct: st.builds(DealtProduct, _PURPOSE, _BYTES),
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
    if isinstance(value, list):
        return [_field(one) for one in value]
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
