"""Paillier keys: drawn for the asker, and looked at by whoever encrypts under one.

The randomness of ciphertexts (`protocols.scores.encrypted.obfuscators`) needs n = p q with p = q = 3 mod 4 and
gcd(p - 1, q - 1) = 2: Damgard, Jurik, Nielsen, IJIS 2010. Primes come from the RSA generator of
`cryptography`; two of them that fit make a key, be they of one RSA key or of two. Each is uniform among the primes of
the generator, and independent of the other but for the condition that the paper asks for.

A public key is looked at for its length and for being odd. Nobody without its factors can see whether they are as they
should be; the package says what a false key does.
"""

import math
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

from protocols.foundation.errors import PeerMisbehaved

DEFAULT_BITS: Final = 3072
"""About 128 bits of security, like everything else here (NIST SP 800-57, table 2)."""
LEAST_BITS: Final = 2048
MOST_BITS: Final = 8192
_LEAST_IN_TESTS: Final = 1024
"""No less comes from the generator."""
_EXPONENT: Final = 65537


@dataclass(frozen=True, slots=True)
class KeySize:
    """The length of moduli that all parties agree on. `for_tests`: whether one that is too short to be safe will do."""

    bits: int = DEFAULT_BITS
    for_tests: bool = False

    def __post_init__(self) -> None:
        least = _LEAST_IN_TESTS if self.for_tests else LEAST_BITS
        if not least <= self.bits <= MOST_BITS or self.bits % 64:
            raise ValueError(f"Paillier keys of {self.bits} bits: a multiple of 64 from {least} to {MOST_BITS}")

    @property
    def bytes(self) -> int:
        return self.bits // 8


def draw_primes(size: KeySize) -> tuple[int, int]:
    """Two primes whose product has exactly so many bits, and which fit."""
    kept: list[int] = []
    while True:
        numbers = rsa.generate_private_key(_EXPONENT, size.bits).private_numbers()
        for prime in (numbers.p, numbers.q):
            for other in kept:
                if fit(prime, other) and (prime * other).bit_length() == size.bits:
                    return prime, other
            kept.append(prime)


def fit(p: int, q: int) -> bool:
    """Whether h = -y^2 generates what ciphertexts are to be random in, whatever unit y is."""
    return p != q and p % 4 == q % 4 == 3 and math.gcd(p - 1, q - 1) == 2


def write_modulus(modulus: int, size: KeySize) -> bytes:
    return modulus.to_bytes(size.bytes, "little")


def read_modulus(public: bytes, size: KeySize) -> int:
    """`PeerMisbehaved` unless it is an odd number of exactly the agreed length."""
    modulus = int.from_bytes(public, "little")
    if len(public) != size.bytes or modulus.bit_length() != size.bits:
        raise PeerMisbehaved(f"a Paillier key that does not have {size.bits} bits")
    if modulus % 2 == 0:
        raise PeerMisbehaved("a Paillier key that is even")
    return modulus
