"""Which backends a measurement has: those asked for by name, or all whose packages are installed."""

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from benchmarks.scoring.hidden import NAME as HIDDEN
from benchmarks.scoring.hidden import bundle as hidden_bundle
from protocols.bundles import ScoreBackend
from protocols.registry import SCORES, encrypted_scores
from protocols.scores.crypten.crypten_import import INSTALL as CRYPTEN_INSTALL
from protocols.scores.encrypted import paillier
from protocols.scores.encrypted.disclosure import PAILLIER_SCORES
from protocols.scores.encrypted.paillier_keys import DEFAULT_BITS, KeySize
from secure_kg.foundation.errors import UserError

ORDER: Final = ("plain", "masked", "bfv", "paillier", "topk", "crypten")
"""Of the tables; what else is registered comes after."""
PAILLIER: Final = "paillier"
PAILLIER_2048: Final = "paillier-2048"
"""Ours at the key length of the peer, where that is measured."""


def known() -> list[str]:
    return sorted(SCORES, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def missing(bundle: ScoreBackend) -> list[str]:
    """Packages of a backend that are not installed."""
    return [package for package in bundle.packages if importlib.util.find_spec(package) is None]


def how_to_install(name: str, packages: list[str]) -> str:
    how = CRYPTEN_INSTALL if "crypten" in packages else f"pip install 'secure-kg[{name}]'"
    return f"{name} needs {', '.join(packages)}, not installed here: {how}"


def choose(options: argparse.Namespace, say: Callable[[str], None]) -> list[str]:
    """`UserError` for a name that is none, or one asked for whose packages are missing; others are left out aloud."""
    for name in options.backends or ():
        if name not in SCORES:
            raise UserError(f"--backends {name}: there are {', '.join(known())}")
        if lacking := missing(SCORES[name]):
            raise UserError(f"--backends {how_to_install(name, lacking)}")
    if options.backends:
        return list(dict.fromkeys(options.backends))
    chosen = []
    for name in known():
        if lacking := missing(SCORES[name]):
            say(f"left out: {how_to_install(name, lacking)}")
        else:
            chosen.append(name)
    return chosen


def with_variants(names: Sequence[str], options: argparse.Namespace) -> list[str]:
    """With `PAILLIER_2048`, if that is to be measured beside `paillier`, and with hidden queries if asked for."""
    wanted = options.peers and PAILLIER in names and options.paillier_bits != 2048
    hides = options.hide_query is not None
    return [*names, *([PAILLIER_2048] if wanted else []), *([HIDDEN] if hides else [])]


def key_bits(names: Sequence[str], asked_for: int | None) -> int:
    """The length of Paillier keys. `UserError` for one that nothing would have."""
    if asked_for is not None and PAILLIER not in names:
        raise UserError(f"--paillier-bits {asked_for}: {PAILLIER} is not among the backends that are measured")
    return DEFAULT_BITS if asked_for is None else asked_for


def bundles(names: Sequence[str], paillier_bits: int) -> dict[str, ScoreBackend]:
    """By the names under which they are reported."""
    others = {PAILLIER_2048: lambda: _paillier(PAILLIER_2048, 2048), HIDDEN: hidden_bundle}
    made = {name: others[name]() if name in others else SCORES[name] for name in names}
    if PAILLIER in made and paillier_bits != DEFAULT_BITS:
        made[PAILLIER] = _paillier(PAILLIER, paillier_bits)
    return made


def _paillier(name: str, bits: int) -> ScoreBackend:
    try:
        size = KeySize(bits)
    except ValueError as problem:
        raise UserError(f"--paillier-bits: {problem}") from None
    return encrypted_scores(name, partial(paillier.PaillierScheme, size), paillier.PACKAGES, PAILLIER_SCORES)
