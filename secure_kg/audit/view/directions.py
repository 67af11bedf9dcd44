"""Who says what: message types that only a server sends, and those that only clients send.

Some go either way (`EITHER`), and what a protocol that is not of this project sends may do so, too.
"""

from typing import Final, Literal

from protocols.alignment.plain import ClearNames, ClearUnion
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.lookups.messages import NamesTotal, NextStep
from protocols.scores import messages as scores
from protocols.scores.crypten import messages as crypten
from protocols.scores.encrypted import messages as encrypted
from protocols.scores.plain import ClearQueries, ClearScores
from protocols.scores.topk import messages as topk
from protocols.session.control import RefuseShares
from protocols.session.conversation import Abandon, Abort, Back, Failed, LeaveOut, Regroup
from protocols.session.group_key import DrawGroupKey, SealedGroupKey, SealedGroupKeys
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
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
from secure_kg.federation.plan import messages as federation
from secure_kg.queries.sessions import messages as questions

OF_SERVERS: Final[frozenset[type[wire.Message]]] = frozenset(
    {
        Abort,
        ChannelDirectory,
        ClearUnion,
        DrawGroupKey,
        EncryptedShares,
        EncryptedSharesWithoutStates,
        KeyDirectory,
        LeaveOut,
        Regroup,
        SealedGroupKey,
        SignedSurvivors,
        SumTotal,
        Survivors,
        UnionPlaces,
        questions.BeginSession,
        federation.CountHolders,
        federation.Evaluate,
        federation.Finish,
        federation.Goodbye,
        federation.LendTable,
        federation.PackedRows,
        federation.SaveCheckpoint,
        federation.SharedBlock,
        federation.SharedRows,
        federation.TrainRound,
        federation.Verdict,
        federation.Welcome,
        scores.BatchServed,
        scores.ScoresAsked,
        scores.ScoresTotal,
        NamesTotal,
        crypten.GroupAnswer,
        crypten.GroupFormed,
        encrypted.BfvTotal,
        encrypted.PaillierTotal,
        topk.DealtProduct,
        topk.DealtSeed,
        topk.SelectionRelay,
        topk.SharesForAsker,
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
        RefuseShares,
        SealedGroupKeys,
        ShareKeys,
        ShareKeysWithoutState,
        SurvivorSignature,
        UnmaskShares,
        questions.AskSession,
        questions.Attend,
        federation.Aligned,
        federation.Done,
        federation.Hello,
        federation.Judged,
        federation.Ready,
        federation.Saved,
        ClearScores,
        scores.AskScores,
        crypten.AnswerShares,
        crypten.JoinGroup,
        encrypted.BfvScores,
        encrypted.PaillierScores,
        topk.SelectionStep,
    }
)
EITHER: Final[frozenset[type[wire.Message]]] = frozenset(
    {
        Abandon,
        ClearQueries,
        NextStep,
        federation.LentTable,
        encrypted.BfvKey,
        encrypted.PaillierKey,
        topk.MaskedTable,
    }
)
"""Words of either side, and what the server passes on as it is."""


def misdirected(kind: type[wire.Message], direction: Literal["received", "sent"]) -> bool:
    """Whether a message passed the wrong way. `direction` is the server's."""
    return kind in (OF_SERVERS if direction == "received" else OF_CLIENTS)
