"""Numbers by which real ciphertexts of scores might be told from simulated ones, without the asker's secret key.

They are what an attacker with the public key would look at. A Paillier ciphertext is (1 + m n) r modulo n^2, so modulo
n it is its obfuscator r alone: an obfuscator of 1 shows there, one that comes twice shows, and so does its Jacobi
symbol. A BFV ciphertext is a pair of polynomials, of which the second has nothing of the plaintext in it: randomness
that comes twice shows there. Bytes, lengths and repeated values of all fields are among the features of every view
(`secure_kg.audit.indistinguishability.view_features`).
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import numpy as np

from protocols.ideal.encrypted_scores import public_key_of
from protocols.ideal.rest_features import Features
from protocols.ideal.views import View
from protocols.scores.encrypted.bfv import BfvScheme
from protocols.scores.encrypted.messages import EncryptedScores, EncryptedTotal
from protocols.scores.encrypted.paillier import PaillierScheme
from protocols.scores.encrypted.paillier_keys import read_modulus

_SMALL: Final = 8
"""One in eight uniform numbers is below an eighth of the largest."""
_Q: Final = 1 << 54
"""More than the modulus of a BFV ciphertext, and less than twice it."""


def _ciphertexts(view: View) -> Iterator[tuple[str, bytes]]:
    for seen in view.messages():
        if isinstance(seen.message, EncryptedScores | EncryptedTotal):
            for one in seen.message.ciphertexts:
                yield ("scores" if isinstance(seen.message, EncryptedScores) else "total"), one


def paillier_features(view: View, scheme: PaillierScheme) -> Features:
    modulus = read_modulus(public_key_of(view), scheme.size)
    found: Features = {}
    numbers: dict[str, list[int]] = {"scores": [], "total": []}
    for kind, one in _ciphertexts(view):
        numbers[kind].append(int.from_bytes(one, "little"))
    for kind, of_kind in numbers.items():
        residues = [number % modulus for number in of_kind]
        fractions = np.array([residue / modulus for residue in residues])
        found |= {
            f"{kind}: obfuscators of 1": float(sum(residue == 1 for residue in residues)),
            f"{kind}: repeated obfuscators": float(len(residues) - len(set(residues))),
            f"{kind}: Jacobi symbols": float(np.mean([scheme.gmpy2.jacobi(one, modulus) for one in residues])),
            f"{kind}: mean obfuscator": float(fractions.mean()),
            f"{kind}: small obfuscators": float((fractions < 1 / _SMALL).mean()),
            f"{kind}: low bits of obfuscators": float(np.mean([residue & 1 for residue in residues])),
            f"{kind}: mean ciphertext": float(np.mean([number / modulus**2 for number in of_kind])),
        }
    both = [number % modulus for of_kind in numbers.values() for number in of_kind]
    found["ratios of obfuscators that come again"] = float(_repeated_ratios(both, modulus))
    return found


def _repeated_ratios(residues: list[int], modulus: int) -> int:
    """Of two obfuscators each, modulo n."""
    ratios = [one * pow(other, -1, modulus) % modulus for one, other in combinations(residues, 2)]
    return len(ratios) - len(set(ratios))


def bfv_features(view: View, scheme: BfvScheme) -> Features:
    context = scheme.load(public_key_of(view)).context
    found: Features = {}
    lengths: dict[str, list[int]] = {"scores": [], "total": []}
    vectors: dict[str, list[Any]] = {"scores": [], "total": []}
    for kind, one in _ciphertexts(view):
        vectors[kind].append(scheme.read(one, context))
        lengths[kind].append(len(one))
    for kind, of_kind in vectors.items():
        # TenSEAL shows the lowest coefficient of each polynomial, and no other one.
        first = np.array([[vector.ciphertext()[0].data(place) for place in (0, 1)] for vector in of_kind], dtype=float)
        for place in (0, 1):
            found[f"{kind}: mean coefficient of polynomial {place}"] = float(first[:, place].mean() / _Q)
            found[f"{kind}: small coefficients of polynomial {place}"] = float((first[:, place] < _Q / _SMALL).mean())
            found[f"{kind}: repeated coefficients of polynomial {place}"] = float(
                len(first) - len(np.unique(first[:, place]))
            )
        found[f"{kind}: mean length"] = float(np.mean(lengths[kind]))
        found[f"{kind}: range of lengths"] = float(np.ptp(lengths[kind]))
    found["scores: pairs of one randomness"] = float(
        sum(_of_one_randomness(*pair) for pair in combinations(vectors["scores"], 2))
    )
    return found


def _of_one_randomness(one: Any, other: Any) -> bool:
    """Whether the difference of two ciphertexts has no second polynomial: SEAL refuses such ones."""
    try:
        return bool((one - other).ciphertext()[0].is_transparent())
    except RuntimeError:
        return True
