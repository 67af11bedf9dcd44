"""Protocols broken on purpose, to show that an audit notices: never to be used for anything else.

Each variant is the real protocol with one piece of the client put out of order, as published or shipped systems have
had it. `insecure(name)` substitutes the piece for as long as a session or a whole run is held in this process, and puts
everything back. Nothing outside of benchmarks and tests imports this module.

    plain-twin         everything in clear: no piece is substituted, the plain protocols are used instead
    no-masks           the messages of the secure protocols, with the masks left off
    reused-masks       mask keys and seeds are drawn once per session and used in every round (FedCQA, algorithm 1)
    unit-weights       the weights of the private union are 1, so its total shows how many hold each name
    short-seeds        a self-mask seed has 28 random bits, padded to 32 bytes
    short-mask-keys    a mask key has 28 random bits, padded to 32 bytes

Substitution is for the whole process: hold one session at a time.
"""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np

import protocols.alignment.psu.names as union_names
import protocols.alignment.psu.table as union_table
import protocols.ideal.opened as opening
import protocols.sums.secagg.client as secagg_client
import protocols.sums.secagg.server as secagg_server
import protocols.sums.secagg.session as secagg_session
import protocols.sums.secret.aggregation as secret_aggregation
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.primitives.group import FieldArray, Group, GroupVector
from protocols.primitives.keys import KeyContext
from protocols.primitives.prg import KEY_BYTES
from protocols.session.channels import PROTOCOL, VERSION
from protocols.session.group_key import GroupKey
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import AdvertiseKeys, KeyDirectory, ShareKeys
from protocols.sums.secagg.states import Advertised
from protocols.sums.secagg.terms import BoundTerms
from secure_kg.foundation.errors import UserError

SHORT_BITS: Final = 28
_drawing = threading.local()


class _InsecureCoins:
    """Stands where the client's module has `secrets`: whoever is drawing decides what is drawn."""

    @staticmethod
    def token_bytes(count: int) -> bytes:
        draw: Callable[[], bytes] | None = getattr(_drawing, "draw", None)
        return secrets.token_bytes(count) if draw is None else draw()


@contextmanager
def _drawn_by(draw: Callable[[], bytes]) -> Iterator[None]:
    _drawing.draw = draw
    try:
        yield
    finally:
        _drawing.draw = None


class _InsecureClient(SecAggClient):
    """A client whose secrets come from `draw`."""

    def draw(self, what: str) -> bytes:
        return secrets.token_bytes(KEY_BYTES)

    def start(self) -> AdvertiseKeys:
        with _drawn_by(lambda: self.draw("mask key")):
            return super().start()

    def _share_keys(self, state: Advertised, directory: KeyDirectory) -> ShareKeys:
        with _drawn_by(lambda: self.draw("seed")):
            return super()._share_keys(state, directory)


class InsecureReusedMasks(_InsecureClient):
    """Draws once per session and purpose; with keys that are not bound to the round, all masks are the same again."""

    def draw(self, what: str) -> bytes:
        kept: dict[tuple[str, str], bytes] = vars(self._session_channels()).setdefault("insecurely_kept", {})
        return kept.setdefault((what, self._terms.sum.purpose), secrets.token_bytes(KEY_BYTES))


class InsecureShortSeeds(_InsecureClient):
    def draw(self, what: str) -> bytes:
        return insecure_short_secret() if what == "seed" else super().draw(what)


class InsecureShortMaskKeys(_InsecureClient):
    def draw(self, what: str) -> bytes:
        return insecure_short_secret() if what == "mask key" else super().draw(what)


def insecure_short_secret() -> bytes:
    return secrets.randbits(SHORT_BITS).to_bytes(KEY_BYTES, "little")


def insecure_unit_weights(count: int) -> FieldArray:
    return np.ones(count, dtype=np.uint64)


def insecure_no_keystreams(vector: GroupVector, group: Group, *keys: object, **more: object) -> None:
    """Adds nothing."""


def insecure_self_mask_context(terms: BoundTerms, party: PartyId) -> KeyContext:
    return KeyContext(PROTOCOL, VERSION, terms.session, SETUP, party, party, f"self mask/{terms.sum.purpose}")


def insecure_pairwise_context(
    terms: BoundTerms, party: PartyId, peer: PartyId, _: Mapping[PartyId, bytes]
) -> KeyContext:
    low, high = sorted((party, peer))
    return KeyContext(PROTOCOL, VERSION, terms.session, SETUP, low, high, f"pairwise mask/{terms.sum.purpose}")


_derive = GroupKey.derive


def insecure_derive(key: GroupKey, use: str, round_id: RoundId, party: PartyId = SERVER, binding: bytes = b"") -> bytes:
    """The mask of a secret sum is the same in all rounds."""
    return _derive(key, use, SETUP if use.startswith("group mask/") else round_id, party, binding)


Substitutions = tuple[tuple[Any, str, Any], ...]
"""Where, what it is called there, and what stands in its place."""


def _clients(insecure_client: type[_InsecureClient]) -> Substitutions:
    return (secagg_session, "SecAggClient", insecure_client), (secagg_client, "secrets", _InsecureCoins)


KEYSTREAM_USERS: Final = (secagg_client, secagg_server, secret_aggregation, opening)
"""Modules that put masks on or take them off."""

VARIANTS: Final[dict[str, Substitutions]] = {
    "plain-twin": (),
    "no-masks": tuple((module, "combine_keystreams", insecure_no_keystreams) for module in KEYSTREAM_USERS),
    "reused-masks": (
        *_clients(InsecureReusedMasks),
        (BoundTerms, "self_mask_context", insecure_self_mask_context),
        (BoundTerms, "pairwise_context", insecure_pairwise_context),
        (GroupKey, "derive", insecure_derive),
    ),
    "unit-weights": tuple((module, "_weights", insecure_unit_weights) for module in (union_table, union_names)),
    "short-seeds": _clients(InsecureShortSeeds),
    "short-mask-keys": _clients(InsecureShortMaskKeys),
}


@contextmanager
def insecure(variant: str) -> Iterator[None]:
    """Whatever runs in this process meanwhile is broken in the way `variant` says."""
    if variant not in VARIANTS:
        raise UserError(f"'{variant}' is no insecure variant: {', '.join(VARIANTS)}")
    with substituted(VARIANTS[variant]):
        yield


@contextmanager
def substituted(substitutions: Substitutions) -> Iterator[None]:
    with ExitStack() as undo:
        for place, name, replacement in substitutions:
            undo.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, replacement)
        yield
