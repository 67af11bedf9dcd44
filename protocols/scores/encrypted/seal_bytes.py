"""SEAL's objects in and out of the wrappers that TenSEAL saves them in.

TenSEAL wraps what SEAL saves into protocol buffers, and trusts them: the length of a vector is a field of its own, and
a false one has TenSEAL 0.3.18 read beyond the end of its memory when it decrypts. A context brings parameters and flags
that its receiver then works with. So no wrapper travels. What travels is SEAL's own objects, which SEAL checks while it
loads them: their sizes, their parameters, and that every coefficient is in range. The wrapper around them is written
here, with the receiver's own length and parameters in it.

Only what this process has made itself is taken apart here (`inner`, `Template`).

    BFVVectorProto        1 sizes (packed)  2 ciphertexts
    TenSEALContextProto   1 parameters      2 public part: TenSEALPublicProto  3 private part  4 kind of encryption
    TenSEALPublicProto    1 public key      2 flags  3 scale  4 relinearisation keys  5 Galois keys
"""

from dataclasses import dataclass
from typing import Final

_NUMBER: Final = 0
_LENGTH_DELIMITED: Final = 2
_WIDTHS: Final = {1: 8, 5: 4}
"""Of the kinds of fields that have a fixed number of bytes."""
_PUBLIC_KEY: Final = 1
_PUBLIC_PART: Final = 2


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a protocol buffer. `value`: without its length, if its kind has one."""

    number: int
    value: bytes
    kind: int = _LENGTH_DELIMITED

    def write(self) -> bytes:
        length = _varint(len(self.value)) if self.kind == _LENGTH_DELIMITED else b""
        return _varint(self.number << 3 | self.kind) + length + self.value


def wrapped_vector(ciphertext: bytes, slots: int) -> bytes:
    """One ciphertext as TenSEAL loads a vector of `slots` entries."""
    return _Field(1, _varint(slots)).write() + _Field(2, ciphertext).write()


def inner(vector: bytes, slots: int) -> bytes:
    """The ciphertext of a vector that TenSEAL has saved."""
    match _fields(vector):
        case [sizes, _Field(number=2, kind=2) as ciphertext] if sizes == _Field(1, _varint(slots)):
            return ciphertext.value
    raise ValueError("TenSEAL has saved a vector in another form than expected")


@dataclass(frozen=True, slots=True)
class Template:
    """A context that TenSEAL has saved, without its public key."""

    before: bytes
    flags: bytes
    after: bytes

    @classmethod
    def of(cls, context: bytes) -> "Template":
        fields = _fields(context)
        flags = [one for part in fields if part.number == _PUBLIC_PART for one in _fields(part.value)]
        return cls(
            b"".join(one.write() for one in fields if one.number < _PUBLIC_PART),
            b"".join(one.write() for one in flags if one.number != _PUBLIC_KEY),
            b"".join(one.write() for one in fields if one.number > _PUBLIC_PART),
        )

    def with_key(self, public_key: bytes) -> bytes:
        """As TenSEAL loads it."""
        public_part = _Field(_PUBLIC_KEY, public_key).write() + self.flags
        return self.before + _Field(_PUBLIC_PART, public_part).write() + self.after


def public_key_of(context: bytes) -> bytes:
    """The public key of a context that TenSEAL has saved."""
    parts = [one for part in _fields(context) if part.number == _PUBLIC_PART for one in _fields(part.value)]
    keys = [one.value for one in parts if one.number == _PUBLIC_KEY]
    if len(keys) != 1:
        raise ValueError("TenSEAL has saved a context without a public key")
    return keys[0]


def _fields(data: bytes) -> list[_Field]:
    found: list[_Field] = []
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            length, at = _read_varint(data, at)
            end = at + length
        else:
            end = _read_varint(data, at)[1] if kind == _NUMBER else at + _WIDTHS[kind]
        found.append(_Field(tag >> 3, data[at:end], kind))
        at = end
    return found


def _varint(number: int) -> bytes:
    """Seven bits at a time, the lowest first; the highest bit of a byte says that more follow."""
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where the next thing begins."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
