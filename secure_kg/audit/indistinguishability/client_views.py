"""Real and simulated views of a client, on fixed inputs: what it sees of rows when holders are counted.

The counterpart of `experiments` for the other side of the table. Client 1 takes part in three counts, with bounds of 3,
4 and 3 again; in the last one a client drops out before its input and another one after it. The rows cover every
number of other holders, among those that client 1 holds itself as among those that it does not. The distinguisher knows
these numbers exactly; the simulator is told them up to the bound only (`protocols.ideal.client_count`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import PURPOSE, CountTask
from protocols.ideal.client_count import SeenCounts, simulate_rests
from protocols.ideal.real import Falls, Parties
from protocols.ideal.rest_features import Features, Rests, features_of
from secure_kg.audit.indistinguishability.experiments import CLIENTS, FALLS, MODEL

ROWS: Final = 60
BOUNDS: Final = (3, 4, 3)
OBSERVER: Final = PartyId(1)


@dataclass(frozen=True)
class ClientExperiment:
    """One protocol with fixed inputs: features of a view, mostly a client's, real or simulated."""

    name: str
    real: Callable[[], Features] = field(repr=False)
    simulated: Callable[[], Features] = field(repr=False)


def client_counts(seed: int) -> ClientExperiment:
    parties = Parties.of(CLIENTS, MODEL)
    tasks = [
        CountTask(RoundId(number), parties.clients, ROWS, b"union", least)
        for number, least in enumerate(BOUNDS, start=1)
    ]
    held = _held(parties.clients, seed)
    session = SeenCounts(parties, [(task, held) for task in tasks], Falls({(RoundId(len(BOUNDS)), PURPOSE): FALLS}))
    others = session.others(OBSERVER)

    def simulate() -> list[Rests]:
        return [simulate_rests(np.minimum(m, task.least - 1), task) for m, task in zip(others, tasks, strict=True)]

    return ClientExperiment(
        "holders-client",
        lambda: features_of(session.seen_by(OBSERVER), others),
        lambda: features_of(simulate(), others),
    )


def _held(parties: Sequence[PartyId], seed: int) -> dict[PartyId, npt.NDArray[np.int64]]:
    """Rows of 0 to 4 other holders in turn, at random who they are; client 1 holds the first half."""
    rng = np.random.default_rng(seed)
    rows: dict[PartyId, list[int]] = {party: [] for party in parties}
    rows[OBSERVER] = list(range(ROWS // 2))
    others = [party for party in parties if party != OBSERVER]
    for row in range(ROWS):
        for place in rng.permutation(len(others))[: row % (len(others) + 1)]:
            rows[others[int(place)]].append(row)
    return {party: np.array(of_party, dtype=np.int64) for party, of_party in rows.items()}


CLIENT_PROTOCOLS: Final[dict[str, Callable[[int], ClientExperiment]]] = {"holders-client": client_counts}
"""As `experiments.PROTOCOLS`, for what a client sees."""
