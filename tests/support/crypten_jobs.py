"""Parts of parties of CrypTen jobs that do not do as they should, or tell what they have seen.

They run in processes of their own, so that they are functions of a module. That of the server must not load torch by
itself: it is imported in the other functions.
"""

import os
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from protocols.foundation.errors import ProtocolError
from protocols.scores.crypten.client import CryptenScoreClient
from protocols.scores.crypten.launcher import BatchJob, client_part, server_part
from protocols.transport.base import Transport


def server_that_tells_what_it_loads(job: BatchJob, transport: Transport) -> dict[str, Any]:
    ended = server_part(job, transport)
    return ended | {"loaded": sorted({"torch", "crypten", "protocols.scores.crypten.group"} & sys.modules.keys())}


def client_that_dies_computing(job: BatchJob, transport: Transport) -> Any:
    """In its first group, as the others compute."""
    from protocols.scores.crypten import selection

    selection.Selection._scored = _die  # type: ignore[method-assign]
    return client_part(job, transport)


def client_that_never_joins(job: BatchJob, transport: Transport) -> Any:
    """It dies when it is asked."""
    CryptenScoreClient._join = _die  # type: ignore[method-assign]
    return client_part(job, transport)


def _die(*_: Any) -> Any:
    os._exit(1)


def client_that_tells_what_was_opened(job: BatchJob, transport: Transport) -> dict[str, Any]:
    """Of all that CrypTen opened to this rank: how often each byte came at each place of a word, and how many of the
    single bits were 1.
    """
    from protocols.scores.crypten import group

    opened: list[np.ndarray] = []
    inner = group.RankCommunicator.all_reduce

    def noting(self: Any, input: Any, *options: Any, **more: Any) -> Any:
        result = inner(self, input, *options, **more)
        opened.extend(tensor.numpy().reshape(-1).copy() for tensor in (result if isinstance(input, list) else [result]))
        return result

    group.RankCommunicator.all_reduce = noting  # type: ignore[method-assign]
    with suppress(ProtocolError):  # without masks there is no answer
        client_part(job, transport)
    of_bits = [words for words in opened if ((words == 0) | (words == 1)).all()]
    of_words = [words for words in opened if not ((words == 0) | (words == 1)).all()]
    places = np.concatenate(of_words).view(np.uint8).reshape(-1, 8)
    return {
        "counts": [np.bincount(places[:, place], minlength=256).tolist() for place in range(8)],
        "ones": sum(int(words.sum()) for words in of_bits),
        "bits": sum(len(words) for words in of_bits),
    }


def client_without_masks(job: BatchJob, transport: Transport) -> dict[str, Any]:
    """The same, with zeros for what is to be drawn from the stream with the dealer."""
    import torch

    from protocols.scores.crypten import group

    group.draw = lambda stream, size: torch.zeros(size, dtype=torch.long)
    return client_that_tells_what_was_opened(job, transport)


def asker_of_two_things(job: BatchJob, transport: Transport) -> Any:
    """It asks client 2 something else than the others."""
    from protocols.sums.secagg.session import SecAggSession

    seal = SecAggSession.seal_for

    def seal_for(self: SecAggSession, peer: Any, use: str, secret: bytes) -> bytes:
        other = use.startswith("ask scores/") and peer == 2
        return seal(self, peer, use, secret[:-4] + bytes(4) if other else secret)

    SecAggSession.seal_for = seal_for  # type: ignore[method-assign]
    return client_part(job, transport)


def scorer_with_false_shares(job: BatchJob, transport: Transport) -> Any:
    """It computes with the others, and seals shares of another group for the asker."""
    from protocols.scores.crypten import binding

    binding.of_group = lambda terms, participants: bytes(32)
    return client_part(job, transport)
