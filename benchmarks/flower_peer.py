"""Flower's SecAgg+ arithmetic on our vectors, if the optional package `flwr` is installed. Nothing else needs it.

The functions are Flower's own; what a client does with them follows its `secaggplus_mod`, from the quantisation to the
reduction modulo 2^32, with its default ranges. Key agreement, encryption and serialisation are left out on both sides.
Flower's masks come from a Mersenne Twister with a seed of 32 bits, ours from AES-256 with a key of 256.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import numpy as np
import numpy.typing as npt

CLIPPING_RANGE: Final = 8.0
QUANTIZATION_RANGE: Final = 1 << 22
MODULUS_RANGE: Final = 1 << 32
_PACKAGE: Final = "flwr.common.secure_aggregation"
_FUNCTIONS: Final = {
    "quantize": "quantization",
    "factor_combine": "ndarrays_arithmetic",
    "parameters_addition": "ndarrays_arithmetic",
    "parameters_subtraction": "ndarrays_arithmetic",
    "parameters_mod": "ndarrays_arithmetic",
    "pseudo_rand_gen": "secaggplus_utils",
    "create_shares": "crypto.shamir",
    "combine_shares": "crypto.shamir",
}
"""Where they are in every version from 1.5 on."""


@dataclass(frozen=True)
class FlowerPeer:
    version: str
    functions: dict[str, Callable[..., Any]]

    def encode_and_mask(
        self, values: npt.NDArray[np.floating], seed: bytes, added: Sequence[bytes], subtracted: Sequence[bytes]
    ) -> npt.NDArray[np.int64]:
        """A client's masked vector: quantised, plus its own mask, plus and minus the pairwise ones."""
        call = self.functions
        vectors = call["quantize"]([values], CLIPPING_RANGE, QUANTIZATION_RANGE)
        vectors = call["factor_combine"](QUANTIZATION_RANGE, vectors)
        shapes = [vector.shape for vector in vectors]
        vectors = call["parameters_addition"](vectors, call["pseudo_rand_gen"](seed, MODULUS_RANGE, shapes))
        for keys, combine in ((added, "parameters_addition"), (subtracted, "parameters_subtraction")):
            for key in keys:
                vectors = call[combine](vectors, call["pseudo_rand_gen"](key, MODULUS_RANGE, shapes))
        masked: npt.NDArray[np.int64] = call["parameters_mod"](vectors, MODULUS_RANGE)[1]
        return masked

    def share_and_recombine(self, secret: bytes, threshold: int, holders: int) -> bytes:
        shares = self.functions["create_shares"](secret, threshold, holders)
        recombined: bytes = self.functions["combine_shares"](shares[:threshold])
        return recombined


def load() -> FlowerPeer | None:
    """None if `flwr` is not installed, not whole, or laid out in a way not known here."""
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")  # a benchmark calls nobody
    try:
        functions = {name: getattr(import_module(f"{_PACKAGE}.{place}"), name) for name, place in _FUNCTIONS.items()}
        return FlowerPeer(version("flwr"), functions)
    except (ImportError, AttributeError, PackageNotFoundError):
        return None
