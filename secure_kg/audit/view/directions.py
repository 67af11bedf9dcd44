"""Who says what: message types that only a server sends, and those that only clients send.

`Abandon` and `LentTable` go either way, and what a protocol that is not of this project sends may do so, too.
"""

from typing import Final, Literal

from protocols.alignment.plain import ClearNames, ClearUnion
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.session.conversation import Abort, Back, Failed, LeaveOut
from protocols.session.group_key import DrawGroupKey, SealedGroupKey, SealedGroupKeys
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.totals import SumTotal
from secure_kg.federation.plan import messages as federation

OF_SERVERS: Final[frozenset[type[wire.Message]]] = frozenset(
    {
        Abort,
        ChannelDirectory,
        ClearUnion,
        DrawGroupKey,
        EncryptedShares,
        KeyDirectory,
        LeaveOut,
        SealedGroupKey,
        SignedSurvivors,
        SumTotal,
        Survivors,
        UnionPlaces,
        federation.Evaluate,
        federation.Finish,
        federation.Goodbye,
        federation.LendTable,
        federation.SaveCheckpoint,
        federation.SharedBlock,
        federation.SharedRows,
        federation.TrainRound,
        federation.Verdict,
        federation.Welcome,
    }
)
OF_CLIENTS: Final[frozenset[type[wire.Message]]] = frozenset(
    {
        AdvertiseChannel,
        AdvertiseKeys,
        Back,
        ClearInput,
        ClearNames,
        Failed,
        MaskedInput,
        SealedGroupKeys,
        ShareKeys,
        SurvivorSignature,
        UnmaskShares,
        federation.Aligned,
        federation.Done,
        federation.Hello,
        federation.Judged,
        federation.Ready,
        federation.Saved,
    }
)


def misdirected(kind: type[wire.Message], direction: Literal["received", "sent"]) -> bool:
    """Whether a message passed the wrong way. `direction` is the server's."""
    return kind in (OF_SERVERS if direction == "received" else OF_CLIENTS)
