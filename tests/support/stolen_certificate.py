"""A TLS 1.3 client that shows a certificate without having its key, which no library lets anybody do.

Only what such a handshake needs (RFC 8446): X25519, TLS_AES_128_GCM_SHA256, Ed25519. The server's proof is not checked.
"""

import hashlib
import hmac
import os
import socket
import struct
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_HANDSHAKE, _APPLICATION, _CHANGE = 22, 23, 20
_CERTIFICATE, _VERIFY, _FINISHED = 11, 15, 20
_EMPTY: Final = hashlib.sha256(b"").digest()


def show_without_key(port: int, leaf: bytes) -> None:
    """Connect to a server on this machine and show it `leaf` (DER), signed for by a fresh key."""
    with socket.create_connection(("127.0.0.1", port), 20) as plain:
        _Client(plain).shake_hands(leaf, Ed25519PrivateKey.generate())
        try:
            while plain.recv(1 << 12):  # until the server hangs up
                pass
        except OSError:
            return


class _Client:
    def __init__(self, plain: socket.socket) -> None:
        self._file = plain.makefile("rb")
        self._plain = plain
        self._said = b""
        """All messages of the handshake so far."""

    def shake_hands(self, leaf: bytes, key: Ed25519PrivateKey) -> None:
        own = X25519PrivateKey.generate()
        hello = _hello(own.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self._plain.sendall(struct.pack(">BHH", _HANDSHAKE, 0x0301, len(hello)) + hello)
        kind, answer = self._record()
        assert kind == _HANDSHAKE, kind
        self._said = hello + answer
        shared = own.exchange(X25519PublicKey.from_public_bytes(_key_share(answer)))
        early = hmac.digest(bytes(32), bytes(32), "sha256")
        secret = hmac.digest(_expanded(early, b"derived", _EMPTY), shared, "sha256")
        theirs, ours = (_expanded(secret, who + b" hs traffic", self._digest) for who in (b"s", b"c"))
        self._read_until_finished(theirs)
        entry = len(leaf).to_bytes(3, "big") + leaf + bytes(2)
        flight = self._message(_CERTIFICATE, b"\0" + len(entry).to_bytes(3, "big") + entry)
        signature = key.sign(b" " * 64 + b"TLS 1.3, client CertificateVerify\0" + self._digest)
        flight += self._message(_VERIFY, struct.pack(">HH", 0x0807, len(signature)) + signature)
        flight += self._message(_FINISHED, hmac.digest(_expanded(ours, b"finished", b""), self._digest, "sha256"))
        size = len(flight) + 17
        head = struct.pack(">BHH", _APPLICATION, 0x0303, size)
        sealed = AESGCM(_expanded(ours, b"key", b"", 16)).encrypt(
            _expanded(ours, b"iv", b"", 12), flight + bytes([_HANDSHAKE]), head
        )
        self._plain.sendall(head + sealed)

    @property
    def _digest(self) -> bytes:
        return hashlib.sha256(self._said).digest()

    def _message(self, kind: int, content: bytes) -> bytes:
        message = bytes([kind]) + len(content).to_bytes(3, "big") + content
        self._said += message
        return message

    def _record(self) -> tuple[int, bytes]:
        while True:
            kind, _, size = struct.unpack(">BHH", self._file.read(5))
            content = self._file.read(size)
            if kind != _CHANGE:
                return kind, content

    def _read_until_finished(self, secret: bytes) -> None:
        opener, iv = AESGCM(_expanded(secret, b"key", b"", 16)), _expanded(secret, b"iv", b"", 12)
        number, content = 0, b""
        while True:
            kind, sealed = self._record()
            nonce = (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")
            content += opener.decrypt(nonce, sealed, struct.pack(">BHH", kind, 0x0303, len(sealed))).rstrip(b"\0")[:-1]
            number += 1
            while len(content) >= 4 and len(content) >= (end := 4 + int.from_bytes(content[1:4], "big")):
                message, content = content[:end], content[end:]
                self._said += message
                if message[0] == _FINISHED:
                    return


def _hello(share: bytes) -> bytes:
    def extension(kind: int, content: bytes) -> bytes:
        return struct.pack(">HH", kind, len(content)) + content

    extensions = (
        extension(43, b"\x02\x03\x04")  # versions: TLS 1.3
        + extension(10, b"\x00\x02\x00\x1d")  # groups: X25519
        + extension(13, b"\x00\x02\x08\x07")  # signatures: Ed25519
        + extension(51, struct.pack(">HHH", 36, 29, 32) + share)
    )
    content = b"\x03\x03" + os.urandom(32) + b"\0" + b"\x00\x02\x13\x01" + b"\x01\0"
    content += struct.pack(">H", len(extensions)) + extensions
    return b"\x01" + len(content).to_bytes(3, "big") + content


def _key_share(answer: bytes) -> bytes:
    """Of a ServerHello."""
    at = 4 + 2 + 32
    at += 1 + answer[at] + 2 + 1
    end = at + 2 + int.from_bytes(answer[at : at + 2], "big")
    at += 2
    while at < end:
        kind, size = struct.unpack_from(">HH", answer, at)
        if kind == 51:
            return answer[at + 8 : at + 4 + size]
        at += 4 + size
    raise AssertionError("no key share")


def _expanded(secret: bytes, label: bytes, context: bytes, size: int = 32) -> bytes:
    """HKDF-Expand-Label, of at most one block."""
    name = b"tls13 " + label
    info = struct.pack(">HB", size, len(name)) + name + bytes([len(context)]) + context
    return hmac.digest(secret, info + b"\x01", "sha256")[:size]
