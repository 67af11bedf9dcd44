"""A thousand clients on paper: bytes in closed form, seconds by the model, and where a server comes to its end."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.byte_counts import Uploads
from benchmarks.scale.measuring import MODEL, Size
from benchmarks.scale.model import Fit
from protocols.alignment.psu.layout import TableLayout
from protocols.costs import byte_counts, score_bytes
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.terms import MOST_CLIENTS, ScoreTerms
from protocols.sums.secagg.params import complete_parameters, sparse_parameters
from secure_kg.federation.plan.settings import RunConfig

CLIENTS: Final = (5, 12, 16, 50, 100, 300, 1000)
ROWS, DIM = 14541, 128
"""Entities of FB15k-237, and the dimension of FedR."""
LINK: Final = 1e9 / 8
"""Bytes per second of the server's link, each way."""
_QUERY: Final = 64
"""Bytes of a question."""


@dataclass(frozen=True, slots=True)
class OnPaper:
    """One number of clients. Bytes and seconds of a client are of the first one; of the server for all of them."""

    clients: int
    rows_up: int
    """Of a client in a sum of rows, everybody everybody's neighbour."""
    count_up: int
    """In a count of holders that keeps rows of so few holders secret as corrupt clients ask for."""
    count_of_two_up: int
    """With `--min-holders 2`."""
    union_up: int
    question_up: int | None
    """Of a scorer for one question over scores; None where a batch has no room for so many."""
    sparse_neighbours: int
    client_seconds: float
    client_seconds_sparse: float
    server_seconds: float
    server_seconds_sparse: float
    link_seconds: float
    """In which the server's link takes everybody's rows."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def on_paper(fits: Sequence[Fit], clients: int) -> OnPaper:
    """What the model says of `clients`."""
    by_name = {(fit.kind, fit.quantity): fit for fit in fits}
    size = Size("sum", clients, ROWS, DIM)
    complete, sparse = (make(clients, MODEL).degree for make in (complete_parameters, sparse_parameters))
    seconds = {
        (quantity, degree): by_name["sum", quantity].predict(size, degree)
        for quantity in ("client_seconds", "server_seconds")
        for degree in (complete, sparse)
    }
    rows = rows_up(clients)
    return OnPaper(
        clients,
        rows,
        count_up(clients, None),
        count_up(clients, 2),
        union_up(clients),
        question_up(clients),
        sparse,
        seconds["client_seconds", complete],
        seconds["client_seconds", sparse],
        seconds["server_seconds", complete],
        seconds["server_seconds", sparse],
        rows * clients / LINK,
    )


def rows_up(clients: int, rows: int = ROWS, dim: int = DIM) -> int:
    """Bytes of a sum of rows under `secagg`, all steps."""
    return sum(Uploads("secagg", clients, 1, rows, dim).round(counting=False).values())


def count_up(clients: int, least: int | None, rows: int = ROWS) -> int:
    """Bytes of a count of holders; `least` as `--min-holders`, None: as a run has it without the option."""
    fewest = RunConfig(clients=clients, min_holders=least).least_holders
    return sum(byte_counts.secret_count(rows, PartyId(1), _others(clients), fewest).bytes_up().values())


def union_up(clients: int, names: int = ROWS) -> int:
    """Bytes of one attempt of the private set union."""
    return sum(byte_counts.private_union(names, PartyId(1), _others(clients)).bytes_up().values())


def question_up(clients: int, positions: int = ROWS) -> int | None:
    """Bytes of a scorer for one question by masked scores."""
    if not 3 <= clients <= MOST_CLIENTS:
        return None
    parties = tuple(PartyId(number) for number in range(1, clients + 1))
    terms = ScoreTerms(round=RoundId(1), clients=parties, asker=PartyId(clients), positions=positions)
    return sum(score_bytes.masked_up(score_bytes.ScoreBatch(terms, _QUERY), PartyId(1)).values())


def table_entries(names: int = ROWS) -> int:
    """Of the union's table."""
    return TableLayout.for_bound(names).entries


def _others(clients: int) -> frozenset[PartyId]:
    return frozenset(PartyId(number) for number in range(2, clients + 1))


def server_seconds(fits: Sequence[Fit], clients: int, neighbours: int, dropped: int) -> float:
    """Of a sum of rows from which so many are missing."""
    (fit,) = (one for one in fits if (one.kind, one.quantity) == ("sum", "server_seconds"))
    return fit.predict(Size("sum", clients, ROWS, DIM, dropped=dropped), neighbours)


def server_megabytes(fits: Sequence[Fit], clients: int, neighbours: int) -> float:
    """Of all parties of a simulated sum: one vector of a client, the server's, and everybody's keys and shares."""
    (fit,) = (one for one in fits if (one.kind, one.quantity) == ("sum", "process_megabytes"))
    return fit.predict(Size("sum", clients, ROWS, DIM), neighbours)
