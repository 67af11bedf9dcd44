"""A client's link in a session that somebody waits for: a server that stays away ends the wait."""

import math
import time
from collections.abc import Collection
from typing import Final

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import OutOfReach
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.transport.https.client import HttpsClientTransport

_LOOK_SECONDS: Final = 0.5


class ImpatientClientTransport(HttpsClientTransport):
    """`OutOfReach` from `receive` once there has been no connection for as long as `lose_absent` says.

    A run waits for its server, since it may be started again and go on. A session of questions does not outlive it.
    """

    _most_seconds_away: float = math.inf
    _away_since: float | None = None

    def lose_absent(self, seconds: float) -> None:
        self._most_seconds_away = seconds

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        while True:
            look = Deadline(min(deadline.at, time.monotonic() + _LOOK_SECONDS))
            taken = super()._take(senders, look)
            if taken is not None:
                return taken
            self._require_link()
            if deadline.expired:
                return None

    def _require_link(self) -> None:
        now = time.monotonic()
        if self.linked:
            self._away_since = None
        elif self._away_since is None:
            self._away_since = now
        elif now - self._away_since > self._most_seconds_away:
            raise OutOfReach(f"the server was out of reach for {self._most_seconds_away:.0f} s", SERVER)
