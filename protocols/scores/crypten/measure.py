"""Seconds of CrypTen's own functions: one comparison of N scores with N others, and one argmax of N scores.

CrypTen runs as its users have it, in fixed point of 16 bits, in a group like that of a batch. Tuples come from the
dealer, as in a batch, or from the first rank, which is CrypTen's default and reads all it deals for.
"""

import json
import secrets
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.primitives.prg import KEY_BYTES, Keystream
from protocols.scores.crypten import rendezvous
from protocols.scores.crypten.crypten_import import load_crypten
from protocols.scores.crypten.dealing import Dealing
from protocols.scores.crypten.launcher import LOADED
from protocols.scores.crypten.rendezvous import RankKeys, Seat
from protocols.transport.base import Transport
from protocols.transport.processes import Part, run_parties

_PRECISION_BITS: Final = 16
_LONGEST: Final = 600.0


@dataclass(frozen=True, slots=True)
class FunctionCosts:
    """Medians over repetitions, as the first rank measures them, each begun by all ranks together."""

    clients: int
    positions: int
    comparison_seconds: float
    argmax_seconds: float
    """Not a number if it was not asked for."""
    right: bool
    """Whether the comparison and the argmax were those of the scores."""


def function_costs(
    clients: int, positions: int, repeats: int = 3, argmax: bool = True, first_party: bool = False
) -> FunctionCosts:
    """`first_party`: tuples come from the first rank instead of the dealer."""
    parts: dict[PartyId, Part] = {SERVER: partial(_form, clients)}
    measured = partial(_measured, positions, repeats, argmax, first_party)
    parts |= {PartyId(number): measured for number in range(1, clients + 1)}
    ended = run_parties(parts, _LONGEST, LOADED)
    if problems := [one.problem for one in ended.values() if one.problem]:
        raise RuntimeError(f"CrypTen could not be measured: {problems[0]}")
    return FunctionCosts(clients, positions, **ended[PartyId(1)].value)


def _form(clients: int, transport: Transport) -> None:
    """Keys of random scores that are nobody's: they travel as they are."""
    frames = transport.gather([PartyId(number) for number in range(1, clients + 1)], Deadline.after(_LONGEST))
    host, port = json.loads(bytes(frames[PartyId(1)]))
    ring, dealt = ([secrets.token_bytes(KEY_BYTES) for _ in range(clients)] for _ in range(2))
    dealing = Dealing()
    try:
        dealing.deal(host, port, dealt)
        for rank in range(clients):
            keys = [ring[rank - 1].hex(), ring[rank].hex(), dealt[rank].hex()]
            place = {"rank": rank, "clients": clients, "host": host, "port": port, "keys": keys}
            transport.send(PartyId(rank + 1), json.dumps(place).encode())
        dealing.done(_LONGEST)
    finally:
        dealing.stop()


def _measured(positions: int, repeats: int, argmax: bool, first_party: bool, transport: Transport) -> dict[str, Any]:
    import torch

    from protocols.scores.crypten.generators import draw
    from protocols.scores.crypten.group import computing

    crypten = load_crypten()
    with rendezvous.listen() as listener:
        transport.send(SERVER, json.dumps(listener.getsockname()).encode())
        place = json.loads(bytes(transport.receive([SERVER], Deadline.after(_LONGEST))[1]))
        seat = Seat(place["rank"], place["clients"], place["host"], place["port"], _LONGEST)
        previous, following, dealer = map(bytes.fromhex, place["keys"])
        keys = RankKeys(previous, following, secrets.token_bytes(KEY_BYTES), dealer)
        # The same scores at all ranks, in sixteenths, so that they can tell whether a result is right.
        drawn = draw(Keystream(bytes(KEY_BYTES)), (2, positions)) % 4096
        one, other = drawn.double() / 16 - 128
        provider = crypten.cfg.temp_override({"mpc.provider": "TFP"}) if first_party else nullcontext()
        with computing(seat, keys, listener if seat.rank == 0 else None, _PRECISION_BITS), provider:
            x, y = crypten.cryptensor(one), crypten.cryptensor(other)
            seconds, greater = _timed(lambda: x > y, repeats)
            right = bool((greater.reveal() == (one > other).long()).all())
            argmax_seconds = float("nan")
            if argmax:
                argmax_seconds, found = _timed(lambda: x.argmax(one_hot=True), repeats)
                best = (found.reveal() != 0).nonzero().flatten()
                right = right and len(best) == 1 and bool(one[best[0]] == torch.max(one))
    return {"comparison_seconds": seconds, "argmax_seconds": argmax_seconds, "right": right}


def _timed(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median of the seconds, and the last result. The first run, in which ranks connect, does not count."""
    import torch

    communicator, seconds, result = load_crypten().communicator.get(), list[float](), None
    for _ in range(repeats + 1):
        communicator.all_reduce(torch.zeros(1, dtype=torch.long))  # all ranks are here
        started = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:]), result
