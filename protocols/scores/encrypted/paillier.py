"""Paillier's cipher for encrypted scores, many scores to a ciphertext.

Plaintexts are integers with slots (`protocols.scores.encrypted.packing`): 32 bits for a masked entry, and room for the
carries of all scorers and the correction. Sums in a slot are reduced modulo 2^32 after decryption, and so are exact.
A ciphertext of a modulus of 3072 bits takes 768 bytes and holds 87 entries (four scorers).

Parties, adversary, reveals, not covered: see the package, `protocols.scores.encrypted`.
Assumes:     the decisional composite residuosity assumption, and that short powers of h look like long ones
             (`protocols.scores.encrypted.obfuscators`).
Reference:   Paillier, EUROCRYPT 1999; Damgard, Jurik, Nielsen, IJIS 2010.
Deviations:  every party that encrypts has an h of its own; the total is made random again by a fresh encryption of the
             correction.

`phe` has the keys, the encoding of a plaintext and decryption by the Chinese remainder theorem; `gmpy2` the arithmetic
of obfuscators and sums. Both come with the extra `paillier`. phe is under the GPL, version 3: no other module of this
project imports it, and nothing runs it unless this backend is chosen.
"""

from collections.abc import Sequence
from typing import Any, Final

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.spent import Spent
from protocols.primitives.group import GroupVector, Ring
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import PaillierKey, PaillierScores, PaillierTotal
from protocols.scores.encrypted.obfuscators import Obfuscators
from protocols.scores.encrypted.optional import need
from protocols.scores.encrypted.packing import Slots
from protocols.scores.encrypted.paillier_keys import KeySize, draw_primes, read_modulus, write_modulus
from protocols.scores.encrypted.scheme import Adder, DecryptionKey, Encryptor, Kinds, Scheme
from protocols.scores.terms import RING

EXTRA: Final = "paillier"
PACKAGES: Final = ("phe", "gmpy2")


class PaillierScheme(Scheme):
    """`size`: the length of keys, which all parties must have the same."""

    def __init__(self, size: KeySize | None = None) -> None:
        self.phe, self.gmpy2 = (need(package, EXTRA) for package in PACKAGES)
        self.size = size or KeySize()

    @property
    def name(self) -> str:
        return f"paillier/{self.size.bits}"

    @property
    def kinds(self) -> Kinds:
        return Kinds(PaillierKey, PaillierScores, PaillierTotal)

    @property
    def group(self) -> Ring:
        return RING

    @property
    def key_bytes(self) -> int:
        return self.size.bytes

    @property
    def ciphertext_bytes(self) -> int:
        return 2 * self.size.bytes

    def slots(self, layout: EncryptedLayout) -> Slots:
        # A modulus has its highest bit set: two bits less, and every plaintext is below half of it.
        return Slots(layout.addends, self.size.bits - 2)

    def ciphertexts(self, layout: EncryptedLayout) -> int:
        return self.slots(layout).integers(layout.entries)

    def new_key(self) -> "PaillierDecryptionKey":
        return PaillierDecryptionKey(self, *draw_primes(self.size))

    def load(self, public: bytes) -> "PaillierEncryptor":
        return PaillierEncryptor(self, read_modulus(public, self.size))

    def read(self, ciphertexts: Sequence[bytes], modulus: Any) -> list[Any]:
        """Ciphertexts as numbers; `PeerMisbehaved` unless all are units modulo n^2.

        A number that is none has a factor in common with n, and so has the product of all modulo n: one gcd will do.
        """
        square, product = modulus * modulus, self.gmpy2.mpz(1)
        numbers = []
        for one in ciphertexts:
            number = self.gmpy2.mpz(int.from_bytes(one, "little"))
            if len(one) != self.ciphertext_bytes or number >= square:
                raise PeerMisbehaved("a ciphertext of another length or beyond its modulus")
            product = product * number % modulus
            numbers.append(number)
        if self.gmpy2.gcd(product, modulus) != 1:
            raise PeerMisbehaved("a ciphertext that is no unit")
        return numbers

    def write(self, number: Any) -> bytes:
        return int(number).to_bytes(self.ciphertext_bytes, "little")


class PaillierDecryptionKey(DecryptionKey):
    def __init__(self, scheme: PaillierScheme, p: int, q: int) -> None:
        self._scheme, self._modulus = scheme, p * q
        self._private = scheme.phe.PaillierPrivateKey(scheme.phe.PaillierPublicKey(p * q), p, q)

    def __repr__(self) -> str:
        return f"PaillierDecryptionKey({self._scheme.size.bits} bits)"

    @property
    def public(self) -> bytes:
        return write_modulus(self._modulus, self._scheme.size)

    def decrypt(self, ciphertexts: Sequence[bytes], layout: EncryptedLayout) -> GroupVector:
        """Cost: two exponentiations modulo p^2 and q^2 per ciphertext."""
        numbers = self._scheme.read(ciphertexts, self._scheme.gmpy2.mpz(self._modulus))
        plain = [int(self._private.raw_decrypt(int(number))) for number in numbers]
        try:
            return self._scheme.slots(layout).unpack(plain, layout.entries)
        except OverflowError:
            raise PeerMisbehaved("a total that is no sum of scores") from None


class PaillierEncryptor(Encryptor):
    """Cost of a ciphertext: one product modulo n^2 and an obfuscator."""

    def __init__(self, scheme: PaillierScheme, modulus: int) -> None:
        self.scheme, self.modulus = scheme, scheme.gmpy2.mpz(modulus)
        self.obfuscators = Obfuscators(scheme.gmpy2, modulus, scheme.size.bits)
        self._public = scheme.phe.PaillierPublicKey(modulus)

    def begin(self, layout: EncryptedLayout) -> None:
        self.obfuscators.begin(self.scheme.ciphertexts(layout))

    def wait(self) -> None:
        self.obfuscators.wait()

    def ahead(self) -> Spent:
        return self.obfuscators.ahead()

    def encrypt(self, vector: GroupVector, layout: EncryptedLayout) -> list[bytes]:
        return [self.scheme.write(number) for number in self.encrypt_numbers(vector, layout)]

    def encrypt_numbers(self, vector: GroupVector, layout: EncryptedLayout) -> list[Any]:
        layout.group.require(vector, layout.entries)
        plain = self.scheme.slots(layout).pack(vector.astype("<u4", copy=False))
        square = self.modulus * self.modulus
        # With r = 1 phe gives 1 + m n; the obfuscator takes the place of r^n.
        return [
            self._public.raw_encrypt(number, r_value=1) * factor % square
            for number, factor in zip(plain, self.obfuscators.take(len(plain)), strict=True)
        ]

    def adder(self, layout: EncryptedLayout) -> "PaillierAdder":
        return PaillierAdder(self, layout)


class PaillierAdder(Adder):
    """Products of ciphertexts modulo n^2: sums of plaintexts."""

    def __init__(self, encryptor: PaillierEncryptor, layout: EncryptedLayout) -> None:
        self._encryptor, self._layout = encryptor, layout
        self._total: list[Any] = [encryptor.scheme.gmpy2.mpz(1)] * encryptor.scheme.ciphertexts(layout)

    def add(self, ciphertexts: Sequence[bytes]) -> None:
        self._multiply(self._encryptor.scheme.read(ciphertexts, self._encryptor.modulus))

    def close(self, correction: GroupVector) -> list[bytes]:
        self._multiply(self._encryptor.encrypt_numbers(correction, self._layout))
        return [self._encryptor.scheme.write(number) for number in self._total]

    def _multiply(self, factors: Sequence[Any]) -> None:
        square = self._encryptor.modulus * self._encryptor.modulus
        self._total = [total * factor % square for total, factor in zip(self._total, factors, strict=True)]
