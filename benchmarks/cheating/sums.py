"""Servers that tamper with the steps of one masked sum: keys, shares, survivors."""

import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import observations, said
from benchmarks.cheating.stage import CLIENTS, VICTIM, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.primitives.keys import AgreementKey
from protocols.primitives.shamir import recombine
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    SignedSurvivors,
    Survivors,
    UnmaskShares,
)

ROUND: Final = 2
PURPOSE: Final = "valid"
"""The attacked sum: that of the first evaluation. No count of holders comes before it."""


class OneSum(Cheat):
    """Tampers with the messages of the attacked sum and with no others."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if self.round == ROUND and getattr(message, "purpose", None) == PURPOSE:
            return (self.instead(to, message),)
        return (self.before(to, message),)

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        return message

    def before(self, to: PartyId, message: wire.Message) -> wire.Message:
        return message


class SplitSurvivors(OneSum):
    """Some clients are told that the victim dropped out, the others that it survived, each with its signatures."""

    believers: Final = frozenset({1, 2})
    """Those who are told that it dropped out."""

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        match message:
            case Survivors() if to in self.believers:
                return structs.replace(message, dropped=[VICTIM])
            case SignedSurvivors():
                alike = {
                    number: signature
                    for number, signature in message.signatures.items()
                    if (number in self.believers) == (to in self.believers)
                }
                return structs.replace(message, signatures=alike)
        return message


class FewSurvivors(OneSum):
    """Everybody is told that all but the victim and itself have dropped out."""

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, Survivors):
            return structs.replace(message, dropped=[n for n in range(1, CLIENTS + 1) if n not in (VICTIM, to)])
        return message


class ReplacedKeys(OneSum):
    """The victim gets keys of the server's own in place of the others'."""

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to == VICTIM and isinstance(message, KeyDirectory):
            keys = {number: AgreementKey().public for number in message.mask_keys}
            return structs.replace(message, mask_keys=keys)
        return message


class ReplayedKeys(OneSum):
    """The victim gets the others' keys of an earlier sum, properly signed for that one."""

    def __init__(self) -> None:
        super().__init__()
        self._old: KeyDirectory | None = None

    def before(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to == VICTIM and isinstance(message, KeyDirectory):
            self._old = message
        return message

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to == VICTIM and isinstance(message, KeyDirectory) and self._old is not None:
            return structs.replace(message, mask_keys=self._old.mask_keys, signatures=self._old.signatures)
        return message


class WithheldClients(OneSum):
    """The victim is shown two of the others only, so that its masks would rest on them alone."""

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to == VICTIM and isinstance(message, KeyDirectory):
            few = sorted(message.mask_keys)[:2]
            # Whatever a directory has by client, it has of these two alone.
            fields = {name: getattr(message, name) for name in message.__struct_fields__}
            maps = {name: value for name, value in fields.items() if isinstance(value, dict)}
            return structs.replace(message, **{name: {n: by[n] for n in few if n in by} for name, by in maps.items()})
        return message


class ReplacedStates(OneSum):
    """The victim is told that the others' inputs depend on something else than they say."""

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to == VICTIM and isinstance(message, EncryptedShares):
            return structs.replace(message, states=dict.fromkeys(message.states, secrets.token_bytes(32)))
        return message


def secrets_of_victim(cheat: Callable[[], OneSum]) -> Callable[[Path], Played]:
    """Judged by the shares that the clients gave away: do they give the victim's mask key, its seed, or both?"""

    def play(path: Path) -> Played:
        stage = Stage(path, stage_config(rounds=ROUND))
        stage.perform(cheat())
        shares: dict[str, dict[int, bytes]] = {"mask key": {}, "seed": {}}
        for one in said(stage.last, UnmaskShares):
            message = one.message
            if isinstance(message, UnmaskShares) and (one.round, message.purpose) == (ROUND, PURPOSE):
                for what, given in (("mask key", message.mask_key_shares), ("seed", message.seed_shares)):
                    if VICTIM in given:
                        shares[what][one.peer] = given[VICTIM]
        threshold = stage.config.sum_parameters(CLIENTS, CLIENTS).threshold
        found = {what: _recombined(given, threshold) is not None for what, given in shares.items()}
        counts = {what: len(given) for what, given in shares.items()}
        alone = _told_alone(stage)
        got = found["seed"] and (found["mask key"] or alone)
        return Played(stage, got, {"shares": counts, "threshold": threshold, "recombined": found})

    return play


def _recombined(shares: dict[int, bytes], threshold: int) -> bytes | None:
    try:
        return recombine(shares, threshold) if len(shares) >= threshold else None
    except ProtocolError:
        return None


def _told_alone(stage: Stage) -> bool:
    """Whether somebody answered for fewer survivors than are declared."""
    least = stage.config.sum_parameters(CLIENTS, CLIENTS).min_survivors
    told = [
        one.message
        for one in observations(stage.last.notebook)
        if isinstance(one.message, Survivors) and one.message.purpose == PURPOSE
    ]
    return any(CLIENTS - len(message.dropped) < least for message in told)


def input_of_victim(cheat: Callable[[], OneSum]) -> Callable[[Path], Played]:
    """Judged by whether the victim gives its masked input to a sum whose keys the server has tampered with."""

    def play(path: Path) -> Played:
        stage = Stage(path, stage_config(rounds=ROUND))
        stage.perform(cheat())
        given: dict[str, Any] = {}
        for kind in (AdvertiseKeys, MaskedInput):
            sent = said(stage.last, kind, sender=VICTIM)
            given[kind.__name__] = sum((one.round, one.purpose) == (ROUND, PURPOSE) for one in sent)
        return Played(stage, given["MaskedInput"] > 0, {"messages_of_the_victim": given})

    return play
