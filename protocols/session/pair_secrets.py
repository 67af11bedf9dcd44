"""The secrets a client shares with each other client of a session: agreed when first needed, then kept.

In a sparse graph a client has a hundred neighbours among thousands of clients; agreeing with all of them at the start
would cost far more than the sum. The private key therefore lives as long as the session.
"""

from collections.abc import Mapping

from protocols.foundation.errors import UnexpectedMessage
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.primitives.keys import AgreementKey, ExtractedSecret


class PairSecrets:
    """`public_keys`: the channel keys of all clients of the session, one's own too."""

    def __init__(self, key: AgreementKey, public_keys: Mapping[PartyId, bytes], session: SessionId) -> None:
        self._key: AgreementKey | None = key
        self._public_keys, self._session = public_keys, session
        self._secrets: dict[PartyId, ExtractedSecret] = {}

    def __repr__(self) -> str:
        return f"PairSecrets({len(self._public_keys)} clients)"

    def __contains__(self, peer: object) -> bool:
        return peer in self._public_keys

    def secret(self, peer: PartyId) -> ExtractedSecret:
        """The secret shared with `peer`, from which keys are derived. `PeerMisbehaved` for a key of small order."""
        if self._key is None:
            raise UnexpectedMessage("the session has ended")
        if peer not in self._secrets:
            self._secrets[peer] = ExtractedSecret(self._key.agree(self._public_keys[peer]), self._session)
        return self._secrets[peer]

    def forget(self) -> None:
        self._key, self._secrets = None, {}
