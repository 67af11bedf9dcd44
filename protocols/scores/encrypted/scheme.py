"""What encrypted scores ask of a cipher whose ciphertexts can be added up."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from protocols.foundation.spent import Spent
from protocols.primitives.group import GroupVector, Ring
from protocols.primitives.residues import Residues
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import AskerKey, EncryptedScores, EncryptedTotal


@dataclass(frozen=True, slots=True)
class Kinds:
    """The messages of one cipher."""

    key: type[AskerKey]
    scores: type[EncryptedScores]
    total: type[EncryptedTotal]


class DecryptionKey(ABC):
    """The asker's key pair. Lives in memory, for one session."""

    @property
    @abstractmethod
    def public(self) -> bytes:
        """What everybody may have."""

    @abstractmethod
    def decrypt(self, ciphertexts: Sequence[bytes], layout: EncryptedLayout) -> GroupVector:
        """The sum that a total holds; `PeerMisbehaved` for what is no total."""

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a private key is not serialised")


class Adder(ABC):
    """A sum of ciphertexts under way."""

    @abstractmethod
    def add(self, ciphertexts: Sequence[bytes]) -> None:
        """Add one vector; `PeerMisbehaved`, and nothing is added, if it is none."""

    @abstractmethod
    def close(self, correction: GroupVector) -> list[bytes]:
        """The sum plus a fresh encryption of the correction: a total that is as random as that encryption."""


class Encryptor(ABC):
    """The asker's public key in the hands of a scorer or of the server."""

    @abstractmethod
    def begin(self, layout: EncryptedLayout) -> None:
        """Compute in the background what encrypting one vector of this layout will need, if there is such a thing."""

    def wait(self) -> None:
        """Until the background is done. Encrypting does not: it computes itself what is not there yet."""
        return

    @abstractmethod
    def encrypt(self, vector: GroupVector, layout: EncryptedLayout) -> list[bytes]:
        """A vector of the layout's group, with fresh randomness."""

    @abstractmethod
    def adder(self, layout: EncryptedLayout) -> Adder:
        """A sum that has nothing in it yet."""

    def ahead(self) -> Spent:
        """What the background has computed since the last call."""
        return Spent()


class Scheme(ABC):
    """One cipher with its parameters, which every party has from its own configuration."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def kinds(self) -> Kinds: ...

    @property
    @abstractmethod
    def group(self) -> Ring | Residues:
        """Where masks live."""

    @property
    @abstractmethod
    def key_bytes(self) -> int:
        """The largest size of a public key."""

    @property
    @abstractmethod
    def ciphertext_bytes(self) -> int:
        """The largest size of a ciphertext."""

    @abstractmethod
    def ciphertexts(self, layout: EncryptedLayout) -> int:
        """How many a vector takes."""

    @abstractmethod
    def new_key(self) -> DecryptionKey: ...

    @abstractmethod
    def load(self, public: bytes) -> Encryptor:
        """`PeerMisbehaved` for what is no key of these parameters."""
