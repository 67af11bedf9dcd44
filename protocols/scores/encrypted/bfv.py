"""BFV for encrypted scores: 4096 entries to a ciphertext, masks modulo the plain modulus.

Parameters. Ring degree 4096. Coefficient moduli of 54 and 55 bits, 109 together, the most that the homomorphic
encryption standard allows for 128 bits of security at this degree, against classical attacks and with ternary secrets
(SEAL has the table, and refuses more). Plain modulus t = 4294828033, the
largest prime below 2^32 that is 1 modulo 8192, so that a plaintext is 4096 slots. All queries of a batch lie flat
across slots. Nothing is multiplied, so neither relinearisation keys nor Galois keys travel. SEAL keeps the modulus of
55 bits for keys: a ciphertext has q of 54 bits and 64 KB, a little less as it travels.

Parties, adversary, reveals, not covered: see the package, `protocols.scores.encrypted`.
Assumes:     ring learning with errors at these parameters.
Reference:   Fan, Vercauteren, IACR ePrint 2012/144, as implemented by SEAL 4 under TenSEAL (extra `bfv`).
Deviations:  plaintexts are masked.

Why sums come out right. A ciphertext decrypts to its plaintext if its noise is below q / 2t, which is 2^20 at least.
SEAL encrypts under the key modulus of 109 bits and divides by the prime of 55 bits. The noise of encryption, at most
21 (2 x 4096 + 1), is less than 1 after the division. The rounding of the division leaves (4096 + 1) / 2 at most, since
secrets are ternary; scaling the plaintext leaves 1/2. So a fresh ciphertext has noise below 2^12 in the worst case, and
a sum of 13 has noise below 2^16: 12 scorers, and the correction, which is encrypted afresh. Scores whose sum could
leave the range of t are refused beforehand (`EncryptedLayout`): TenSEAL would wrap them without a word.

Bytes of other parties: see `protocols.scores.encrypted.seal_bytes`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.group import GroupVector
from protocols.primitives.residues import Residues
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import BfvKey, BfvScores, BfvTotal
from protocols.scores.encrypted.optional import need
from protocols.scores.encrypted.scheme import Adder, DecryptionKey, Encryptor, Kinds, Scheme
from protocols.scores.encrypted.seal_bytes import Template, inner, public_key_of, wrapped_vector

EXTRA: Final = "bfv"
PACKAGES: Final = ("tenseal",)
DEGREE: Final = 4096
COEFFICIENT_BITS: Final = (54, 55)
PLAIN_MODULUS: Final = 4294828033
GROUP: Final = Residues(PLAIN_MODULUS)
"""Where masks live."""
_WORD: Final = 8
_POLYNOMIALS: Final = 2
_OVERHEAD: Final = 2048
"""More than SEAL's headers, and than what its compression may add to bytes that it cannot compress."""


class BfvScheme(Scheme):
    def __init__(self) -> None:
        self.tenseal = need(*PACKAGES, EXTRA)
        self._template: Template | None = None

    @property
    def name(self) -> str:
        return f"bfv/{DEGREE}/{PLAIN_MODULUS}"

    @property
    def kinds(self) -> Kinds:
        return Kinds(BfvKey, BfvScores, BfvTotal)

    @property
    def group(self) -> Residues:
        return GROUP

    @property
    def key_bytes(self) -> int:
        return len(COEFFICIENT_BITS) * self._polynomials_bytes + _OVERHEAD

    @property
    def ciphertext_bytes(self) -> int:
        return self._polynomials_bytes + _OVERHEAD

    @property
    def _polynomials_bytes(self) -> int:
        """Modulo one prime."""
        return _POLYNOMIALS * DEGREE * _WORD

    def ciphertexts(self, layout: EncryptedLayout) -> int:
        return -(-layout.entries // DEGREE)

    def new_key(self) -> "BfvDecryptionKey":
        return BfvDecryptionKey(self, self._new_context())

    def load(self, public: bytes) -> "BfvEncryptor":
        if len(public) > self.key_bytes:
            raise PeerMisbehaved(f"a BFV key of {len(public)} bytes")
        if self._template is None:
            self._template = Template.of(self._saved(self._new_context()))
        with _refusing("a BFV key of other parameters, or none"):
            context = self.tenseal.context_from(self._template.with_key(public), n_threads=1)
            (tried,) = self.tenseal.bfv_vector(context, [0] * DEGREE).ciphertext()
            hides = not tried.is_transparent()
        if not hides:  # what scorers encrypt under it would be refused, and they would be blamed for it
            raise PeerMisbehaved("a BFV key that encrypts nothing")
        return BfvEncryptor(self, context)

    def public_of(self, context: Any) -> bytes:
        return public_key_of(self._saved(context))

    def read(self, ciphertext: bytes, context: Any) -> Any:
        """A ciphertext from outside. SEAL checks parameters and coefficients, this the rest."""
        with _refusing("a BFV ciphertext of other parameters, or none"):
            vector = self.tenseal.bfv_vector_from(context, wrapped_vector(ciphertext, DEGREE))
            (loaded,) = vector.ciphertext()
            sound = loaded.size() == _POLYNOMIALS and not loaded.is_ntt_form() and not loaded.is_transparent()
        if not sound:
            raise PeerMisbehaved("a BFV ciphertext that no scorer makes")
        return vector

    def write(self, vector: Any) -> bytes:
        return inner(vector.serialize(), DEGREE)

    def _new_context(self) -> Any:
        return self.tenseal.context(
            self.tenseal.SCHEME_TYPE.BFV, DEGREE, PLAIN_MODULUS, coeff_mod_bit_sizes=list(COEFFICIENT_BITS), n_threads=1
        )

    @staticmethod
    def _saved(context: Any) -> bytes:
        saved: bytes = context.serialize(
            save_public_key=True, save_secret_key=False, save_galois_keys=False, save_relin_keys=False
        )
        return saved


class BfvDecryptionKey(DecryptionKey):
    def __init__(self, scheme: BfvScheme, context: Any) -> None:
        self._scheme, self._context = scheme, context
        self._public = scheme.public_of(context)

    def __repr__(self) -> str:
        return "BfvDecryptionKey()"

    @property
    def public(self) -> bytes:
        return self._public

    def decrypt(self, ciphertexts: Sequence[bytes], layout: EncryptedLayout) -> GroupVector:
        slots = np.empty((len(ciphertexts), DEGREE), dtype=np.int64)
        for place, one in enumerate(ciphertexts):
            vector = self._scheme.read(one, self._context)
            with _refusing("a BFV ciphertext that cannot be decrypted"):
                slots[place] = vector.decrypt()
        return (slots.reshape(-1)[: layout.entries] % PLAIN_MODULUS).astype("<u4")


class BfvEncryptor(Encryptor):
    def __init__(self, scheme: BfvScheme, context: Any) -> None:
        self.scheme, self.context = scheme, context

    def begin(self, layout: EncryptedLayout) -> None:
        """Nothing can be done before there is a vector."""

    def encrypt(self, vector: GroupVector, layout: EncryptedLayout) -> list[bytes]:
        return [self.scheme.write(one) for one in self.encrypt_vectors(vector, layout)]

    def encrypt_vectors(self, vector: GroupVector, layout: EncryptedLayout) -> list[Any]:
        layout.group.require(vector, layout.entries)
        slots = np.zeros(self.scheme.ciphertexts(layout) * DEGREE, dtype=np.int64)
        slots[: layout.entries] = vector
        slots[slots > PLAIN_MODULUS // 2] -= PLAIN_MODULUS  # TenSEAL takes residues on both sides of zero
        make = self.scheme.tenseal.bfv_vector
        return [make(self.context, one.tolist()) for one in slots.reshape(-1, DEGREE)]

    def adder(self, layout: EncryptedLayout) -> "BfvAdder":
        return BfvAdder(self, layout)


class BfvAdder(Adder):
    def __init__(self, encryptor: BfvEncryptor, layout: EncryptedLayout) -> None:
        self._encryptor, self._layout = encryptor, layout
        self._total: list[Any] = []

    def add(self, ciphertexts: Sequence[bytes]) -> None:
        scheme, context = self._encryptor.scheme, self._encryptor.context
        self._combine([scheme.read(one, context) for one in ciphertexts])

    def close(self, correction: GroupVector) -> list[bytes]:
        self._combine(self._encryptor.encrypt_vectors(correction, self._layout))
        return [self._encryptor.scheme.write(one) for one in self._total]

    def _combine(self, vectors: list[Any]) -> None:
        if not self._total:
            self._total = vectors
            return
        with _refusing("BFV ciphertexts that cannot be added up"):
            for total, one in zip(self._total, vectors, strict=True):
                total.add_(one)


@contextmanager
def _refusing(problem: str) -> Iterator[None]:
    """What TenSEAL says of bytes that it does not like is for nobody else's eyes."""
    try:
        yield
    except (RuntimeError, ValueError, IndexError, MemoryError):
        raise PeerMisbehaved(problem) from None
