"""A CrypTen group broken on purpose, to show that a comparison of the dealer's view notices: for nothing else.

The ranks open which positions nobody has a score of, and leave these out of the tournament, to save time. What they ask
the dealer for then depends on what clients hold. Every part is a function of this module, run in a process of its own.
"""

from functools import partial
from typing import Any

from protocols.foundation.identifiers import PartyId
from protocols.ideal.crypten_scores import Requests, telling_client
from protocols.scores.crypten.launcher import BatchJob, client_part
from protocols.transport.base import Transport
from protocols.transport.processes import Part


def skipping_parts(job: BatchJob) -> dict[PartyId, Part]:
    """Of all clients."""
    first = min(job.parties)
    parts: dict[PartyId, Part] = {party: partial(_skipping_client, job) for party in job.parties}
    return parts | {first: partial(_telling_skipping_client, job)}


def _skipping_client(job: BatchJob, transport: Transport) -> Any:
    _skip()
    return client_part(job, transport)


def _telling_skipping_client(job: BatchJob, transport: Transport) -> Requests:
    _skip()
    return telling_client(job, transport)


def _skip() -> None:
    from protocols.scores.crypten.selection import Selection  # imports torch

    scored = Selection._scored

    def insecure_scored(self: Selection, cells: Any, weights: Any, nobody: Any) -> Any:
        keys = scored(self, cells, weights, nobody)
        return keys[:, self._arithmetic(nobody).get_plain_text() == 0]

    setattr(Selection, "_scored", insecure_scored)  # noqa: B010  the process ends with its job
