"""The dealer: a process of its own that CrypTen calls the trusted third party. The server starts and ends it.

    python -m protocols.scores.crypten.dealer

It reads one line of JSON per group from its input: host, port, stall, and the keys of the ranks in hexadecimal. It
joins that group as its last rank, answers requests of the first rank until that says that it is done, and writes one
line of JSON with what it took. It ends with its input, or with a group that breaks.

It is a process of its own because it needs torch for its traffic, which the server's process never loads.
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from protocols.scores.crypten.dealt import REQUEST_ENTRIES, Deal, Kind, read_request
from protocols.scores.crypten.rendezvous import Seat, process_group


def deal(seat: Seat, keys: Sequence[bytes]) -> int:
    """Serve one group; how many requests it had. `RuntimeError` if the group breaks."""
    import torch
    import torch.distributed as dist

    dealt, requests = Deal(keys), 0
    with process_group(seat):
        dist.new_group(list(range(seat.computing)))  # made by all processes, though this one is not in it
        asked = torch.empty(REQUEST_ENTRIES, dtype=torch.long)
        while True:
            dist.recv(asked, 0)
            kind, first, second = read_request(asked.tolist())
            if kind is Kind.END:
                return requests
            requests += 1
            share = dealt.answer(kind, first, second)
            if share.size:
                dist.send(torch.from_numpy(share.view("<i8")), 0)


def main() -> int:
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        keys = [bytes.fromhex(key) for key in job["keys"]]
        seat = Seat(len(keys), len(keys), job["host"], job["port"], job["stall"])
        started, cpu_started = time.perf_counter(), time.process_time()
        try:
            requests = deal(seat, keys)
        except RuntimeError as problem:
            sys.stderr.write(f"the group broke: {str(problem).splitlines()[0]}\n")
            return 1
        took = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu_started}
        sys.stdout.write(json.dumps({"requests": requests, **took}) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
