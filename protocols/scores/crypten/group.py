"""A computing rank's place in CrypTen: its communicator, its randomness, and its dealer.

CrypTen finds its communicator, its generators and its provider in places of its own modules. `computing` puts ours
there for the time of one group, and takes them away again:

    communicator  what CrypTen calls of it: opening to all ranks and gathering masked values. It has nothing that would
                  send pickled objects, or open to one rank by `reduce`, which leaves plaintext in other ranks' memory.
    generators    AES-256 keystreams (`protocols.scores.crypten.generators`)
    provider      a dealer outside of the computing ranks (`protocols.scores.crypten.dealt`), not the first rank
    precision     0 bits: whole numbers, no truncation

This module imports torch and CrypTen: processes that compute load it, the server's process does not.
"""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.distributed as dist

from protocols.primitives.prg import Keystream
from protocols.scores.crypten.crypten_import import load_crypten
from protocols.scores.crypten.dealt import Kind, request
from protocols.scores.crypten.generators import draw, installed
from protocols.scores.crypten.rendezvous import RankKeys, Seat, process_group

_CLAIM: Final = threading.Lock()
"""CrypTen's state belongs to the process: there is one group at a time."""
_PROVIDERS: Final = "__SUPPORTED_PROVIDERS"
_PROVIDER: Final = "KEYED"
_WORD_BYTES: Final = 8


@dataclass(slots=True)
class GroupTraffic:
    """What a rank has exchanged in a group, outside of the toolkit's own transport."""

    rounds: int = 0
    """Openings: all ranks wait for each other."""
    sent_bytes: int = 0
    """By the algorithm of gloo: an opening of b bytes among n ranks costs each of them 2 b (n - 1) / n."""
    requests: int = 0
    """To the dealer; the first rank alone sends them."""
    waiting_seconds: float = 0.0
    """Of `seconds`, for other ranks and for the dealer."""
    seconds: float = 0.0
    """Since the ranks have met."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.waiting_seconds += time.perf_counter() - started


class RankCommunicator:
    """What CrypTen finds as its communicator."""

    def __init__(self, seat: Seat, traffic: GroupTraffic) -> None:
        self._seat, self._traffic = seat, traffic
        # Every process of the whole group takes part in making a smaller one, the dealer too.
        self._group = dist.new_group(list(range(seat.computing)))

    def get_rank(self) -> int:
        return self._seat.rank

    def get_world_size(self) -> int:
        return self._seat.computing

    def all_reduce(self, input: Any, op: Any = dist.ReduceOp.SUM, batched: bool = False) -> Any:
        """Open to all ranks: one round, however many tensors."""
        opened = [tensor.clone() for tensor in (input if batched else [input])]
        with self._traffic.waiting():
            works = [dist.all_reduce(tensor.data, op=op, group=self._group, async_op=True) for tensor in opened]
            for work in works:
                work.wait()
        others = self._seat.computing - 1
        self._traffic.rounds += 1
        self._traffic.sent_bytes += sum(
            2 * tensor.numel() * _WORD_BYTES * others // self._seat.computing for tensor in opened
        )
        return opened if batched else opened[0]

    def gather(self, tensor: torch.Tensor, dst: int) -> Sequence[torch.Tensor | None]:
        """Masked values to one rank."""
        self._traffic.rounds += 1
        if self._seat.rank != dst:
            dist.gather(tensor.data, [], dst, group=self._group)
            self._traffic.sent_bytes += tensor.numel() * _WORD_BYTES
            return [None]
        gathered = [torch.empty_like(tensor) for _ in range(self._seat.computing)]
        dist.gather(tensor.data, gathered, dst, group=self._group)
        return gathered


class DealtTuples:
    """What CrypTen finds as its provider of correlated randomness (`protocols.scores.crypten.dealt`)."""

    def __init__(self, seat: Seat, key: bytes, traffic: GroupTraffic) -> None:
        self._seat, self._stream, self._traffic = seat, Keystream(key), traffic
        primitives = load_crypten().mpc.primitives
        self._arithmetic, self._binary = primitives.ArithmeticSharedTensor, primitives.BinarySharedTensor

    def generate_additive_triple(self, size0: Any, size1: Any, op: str, device: Any = None) -> tuple[Any, Any, Any]:
        if op != "mul":
            raise NotImplementedError(f"the dealer has no randomness for '{op}'")
        self._ask(Kind.PRODUCT, size0, size1)
        a, b = draw(self._stream, size0), draw(self._stream, size1)
        return self._additive(a), self._additive(b), self._additive(self._answer(_broadcast(size0, size1)))

    def generate_binary_triple(self, size0: Any, size1: Any, device: Any = None) -> tuple[Any, Any, Any]:
        self._ask(Kind.AND, size0, size1)
        a, b = draw(self._stream, size0), draw(self._stream, size1)
        c = self._answer(_broadcast(size0, size1))
        from_shares = self._binary.from_shares
        return from_shares(a), from_shares(b), from_shares(c)

    def square(self, size: Any, device: Any = None) -> tuple[Any, Any]:
        return self._pair(Kind.SQUARE, size)

    def wrap_rng(self, size: Any, device: Any = None) -> tuple[Any, Any]:
        return self._pair(Kind.WRAPS, size)

    def B2A_rng(self, size: Any, device: Any = None) -> tuple[Any, Any]:
        self._ask(Kind.BIT, size)
        bit = draw(self._stream, size) & 1
        return self._additive(self._answer(size)), self._binary.from_shares(bit)

    def _pair(self, kind: Kind, size: Any) -> tuple[Any, Any]:
        self._ask(kind, size)
        a = draw(self._stream, size)
        return self._additive(a), self._additive(self._answer(size))

    def _additive(self, share: torch.Tensor) -> Any:
        return self._arithmetic.from_shares(share, precision=0)

    def _ask(self, kind: Kind, first: Any, second: Any = ()) -> None:
        """The request leaves before this rank draws: the dealer draws meanwhile."""
        if self._seat.rank == 0:
            dist.send(torch.tensor(request(kind, first, second)), self._seat.dealer)
            self._traffic.requests += 1

    def _answer(self, size: Any) -> torch.Tensor:
        if self._seat.rank != 0:
            return draw(self._stream, size)
        share = torch.empty(torch.Size(size), dtype=torch.long)
        if share.numel():
            with self._traffic.waiting():
                dist.recv(share, self._seat.dealer)
        return share

    def end(self) -> None:
        """Tell the dealer that the group is done."""
        if self._seat.rank == 0:
            dist.send(torch.tensor(request(Kind.END)), self._seat.dealer)


def _broadcast(size0: Any, size1: Any) -> torch.Size:
    shape: torch.Size = torch.broadcast_shapes(size0, size1)  # type: ignore[no-untyped-call]
    return shape


@contextmanager
def computing(
    seat: Seat, keys: RankKeys, listener: socket.socket | None = None, precision_bits: int = 0
) -> Iterator[GroupTraffic]:
    """This process as one rank of a group in which CrypTen computes. `RuntimeError` if the group breaks.

    `precision_bits`: 0 for whole numbers; another one only to measure what CrypTen's own functions cost.
    """
    crypten = load_crypten()
    if not _CLAIM.acquire(blocking=False):
        raise RuntimeError("this process is in a CrypTen group already: one party per process")
    threads, traffic = torch.get_num_threads(), GroupTraffic()
    try:
        torch.set_num_threads(1)
        settings = {"mpc.provider": _PROVIDER, "encoder.precision_bits": precision_bits}
        with process_group(seat, listener), installed(keys), crypten.cfg.temp_override(settings):
            holder = crypten.communicator.DistributedCommunicator
            dealt = DealtTuples(seat, keys.dealer, traffic)
            holder.instance = RankCommunicator(seat, traffic)
            vars(crypten.mpc)[_PROVIDERS][_PROVIDER] = dealt
            started = time.perf_counter()
            try:
                with crypten.no_grad():
                    yield traffic
                dealt.end()
            finally:
                traffic.seconds = time.perf_counter() - started
                holder.instance = None
                vars(crypten.mpc)[_PROVIDERS].pop(_PROVIDER)
    finally:
        torch.set_num_threads(threads)
        _CLAIM.release()
