"""The server's program of encrypted scores over a record. It reads no ciphertext, and so needs neither cipher nor key.

What a server adds up of ciphertexts, and the fresh encryption that it adds to them, nobody can compute again who lacks
the asker's key. So the total is taken as the server sent it. Everything else is as the program does it.
"""

from collections.abc import Sequence

from protocols.primitives.group import GroupVector, Ring
from protocols.primitives.residues import Residues
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.scheme import Adder, DecryptionKey, Encryptor, Kinds, Scheme
from protocols.scores.interface import Recorded


class SchemeAgain(Scheme):
    """`scheme` without its arithmetic."""

    def __init__(self, scheme: Scheme, recorded: Recorded) -> None:
        self._scheme, self._recorded = scheme, recorded

    @property
    def name(self) -> str:
        return self._scheme.name

    @property
    def kinds(self) -> Kinds:
        return self._scheme.kinds

    @property
    def group(self) -> Ring | Residues:
        return self._scheme.group

    @property
    def key_bytes(self) -> int:
        return self._scheme.key_bytes

    @property
    def ciphertext_bytes(self) -> int:
        return self._scheme.ciphertext_bytes

    def ciphertexts(self, layout: EncryptedLayout) -> int:
        return self._scheme.ciphertexts(layout)

    def new_key(self) -> DecryptionKey:
        raise NotImplementedError("whoever runs a server again has no key")

    def load(self, public: bytes) -> Encryptor:
        """Any: a server that has refused a key says so, and ends the session."""
        return _Unread(self._scheme, self._recorded)


class _Unread(Encryptor):
    def __init__(self, scheme: Scheme, recorded: Recorded) -> None:
        self._scheme, self._recorded = scheme, recorded

    def begin(self, layout: EncryptedLayout) -> None:
        """Nothing will be encrypted."""

    def encrypt(self, vector: GroupVector, layout: EncryptedLayout) -> list[bytes]:
        raise NotImplementedError("whoever runs a server again encrypts nothing")

    def adder(self, layout: EncryptedLayout) -> Adder:
        return _AsSent(self._scheme, self._recorded, layout)


class _AsSent(Adder):
    def __init__(self, scheme: Scheme, recorded: Recorded, layout: EncryptedLayout) -> None:
        self._scheme, self._recorded, self._layout = scheme, recorded, layout

    def add(self, ciphertexts: Sequence[bytes]) -> None:
        """Not added up."""

    def close(self, correction: GroupVector) -> list[bytes]:
        total = self._recorded.said(self._scheme.kinds.total)
        if total is not None:
            return list(total.ciphertexts)
        # It did not get through, or the server was ended before: any will do, because it is in no record.
        return [bytes(self._scheme.ciphertext_bytes)] * self._scheme.ciphertexts(self._layout)
