"""A batch of the backend `crypten` under mpirun, as a job has it: rank 0 is the server, the others are clients.

mpirun -n 4 python crypten_ranks.py <file for what the asker reads>
"""

import json
import sys
from pathlib import Path

from mpi4py import MPI

from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, SessionId
from protocols.scores.crypten.launcher import BatchJob, client_part, server_part
from protocols.transport.mpi import MpiTransport
from tests.support.score_batches import some_scores, terms_of


def main() -> None:
    communicator = MPI.COMM_WORLD
    terms = terms_of(communicator.Get_size() - 1, 12, top=3)
    job = BatchJob((terms,), (some_scores(terms),), session=SessionId(bytes(range(16))))
    with MpiTransport(communicator) as transport:
        part = server_part if transport.party == SERVER else client_part
        ended = part(job, transport)
        transport.flush(Deadline.after(10.0))
        if transport.party == terms.asker:
            Path(sys.argv[1]).write_text(json.dumps(ended), encoding="utf-8")


if __name__ == "__main__":
    main()
