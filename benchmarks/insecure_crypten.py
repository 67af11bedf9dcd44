"""CrypTen groups broken on purpose, to show that a comparison of the server's view notices: for nothing else.

As `insecure_scores`, in what clients do in processes of their own: `client_parts` is substituted by parts of this
module.

    skipped-positions  ranks open which positions nobody has a score of, and compare the others only, to save time: what
                       they ask the dealer for depends on what clients hold
    unsealed-group     ring keys and shares of answers are not encrypted on their way through the server
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from benchmarks.insecure_hidden import unsealed
from protocols.foundation.identifiers import PartyId
from protocols.ideal import crypten_scores
from protocols.ideal.crypten_scores import Requests, telling_client
from protocols.scores.crypten.launcher import BatchJob, client_part
from protocols.transport.base import Transport
from protocols.transport.processes import Part

Break = Callable[[], None]


def _parts(break_: Break, job: BatchJob) -> dict[PartyId, Part]:
    """Of all clients."""
    parts: dict[PartyId, Part] = {party: partial(_broken_client, break_, job) for party in job.parties}
    return parts | {min(job.parties): partial(_telling_broken_client, break_, job)}


def _broken_client(break_: Break, job: BatchJob, transport: Transport) -> Any:
    break_()
    return client_part(job, transport)


def _telling_broken_client(break_: Break, job: BatchJob, transport: Transport) -> Requests:
    break_()
    return telling_client(job, transport)


def insecure_skip() -> None:
    """For as long as this process runs."""
    from protocols.scores.crypten.selection import Selection  # imports torch

    scored = Selection._scored

    def insecure_scored(self: Selection, cells: Any, weights: Any, nobody: Any) -> Any:
        keys = scored(self, cells, weights, nobody)
        return keys[:, self._arithmetic(nobody).get_plain_text() == 0]

    setattr(Selection, "_scored", insecure_scored)  # noqa: B010  a method of a class of another module


def insecure_unseal() -> None:
    """For as long as this process runs."""
    for place, name, piece in unsealed("crypten "):
        setattr(place, name, piece)


CRYPTEN_VARIANTS: Final = {
    "skipped-positions": ((crypten_scores, "client_parts", partial(_parts, insecure_skip)),),
    "unsealed-group": ((crypten_scores, "client_parts", partial(_parts, insecure_unseal)),),
}
