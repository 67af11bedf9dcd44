"""Messages of a session's set-up: `AdvertiseChannel` from every client, then one `ChannelDirectory` for all.

A signature is empty against a semi-honest server and 64 bytes against an active one; the receiver's own configuration
says which it must be.
"""

from collections.abc import Mapping
from typing import Final

from protocols.foundation import wire
from protocols.primitives.identity import SIGNATURE_BYTES
from protocols.primitives.keys import PUBLIC_KEY_BYTES

COMMITMENT_BYTES: Final = 32


def require_parties(entries: Mapping[int, bytes], *lengths: int) -> None:
    """`DecodeError` unless the keys are clients and every entry has one of these lengths."""
    wire.require(all(party > 0 for party in entries), "a party that is no client")
    wire.require(all(len(entry) in lengths for entry in entries.values()), "an entry of wrong length")


def require_signature(signature: bytes) -> None:
    """`DecodeError` unless it is a signature or empty."""
    wire.require(len(signature) in (0, SIGNATURE_BYTES), "signature of wrong length")


@wire.message(0x0110)
class AdvertiseChannel(wire.Message, frozen=True):
    """Client to server, once per session: the public half of the key under which others encrypt shares for it."""

    channel_key: bytes
    signature: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.channel_key) == PUBLIC_KEY_BYTES, "public key of wrong length")
        require_signature(self.signature)


@wire.message(0x0111)
class ChannelDirectory(wire.Message, frozen=True):
    """Server to client, once per session: the channel keys of all who advertised one, the receiver's included."""

    channel_keys: dict[int, bytes]
    signatures: dict[int, bytes]

    def __post_init__(self) -> None:
        require_parties(self.channel_keys, PUBLIC_KEY_BYTES)
        require_parties(self.signatures, 0, SIGNATURE_BYTES)
