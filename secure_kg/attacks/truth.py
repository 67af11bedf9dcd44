"""Ground truth at a client: read to score guesses and to play the client that colludes, never by an attack itself."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from secure_kg.attacks.knowledge import LeakedPairs, Named
from secure_kg.attacks.uploads import Places
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.strategies import Shared
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator
from secure_kg.runs.alignment_files import load_aligned, load_positions
from secure_kg.runs.checkpoint import load_arrays


@dataclass(frozen=True, slots=True)
class Truth:
    """One client's graph, the rows of its trained model, and where its names stand in the union."""

    client: int
    graph: ClientGraph
    shared: Shared
    """Which table is shared."""
    union_size: int
    positions: Places = field(repr=False)
    """[names of the shared table]."""
    entities: Rows = field(repr=False)
    """[entities, width]."""
    relations: Rows = field(repr=False)
    """[relations, width]."""

    @classmethod
    def read(cls, run: Path, client: int, graph: ClientGraph, shared: Shared, clients: Path | None = None) -> "Truth":
        """From the folder of a finished run: `server/alignment.json` and client K's own folder in `clients`.

        `clients`: where those lie, if not beside the server's.
        """
        aligned = load_aligned(run / "server")
        folder = (clients if clients is not None else run / "clients") / str(client)
        if aligned is None:
            raise UserError(f"{run}: the run was never aligned, so there is nothing to attack")
        names = graph.entities if shared == "entity" else graph.relations
        positions = load_positions(folder, aligned.union.digest, names)
        model, _ = load_arrays(folder / "model.safetensors")
        if "counts" in model:
            raise UserError(f"{folder / 'model.safetensors'}: a table of counts, and these attacks are on embeddings")
        tables = model.get("entity"), model.get("relation")
        if any(table is None for table in tables) or (len(model["entity"]), len(model["relation"])) != (
            len(graph.entities),
            len(graph.relations),
        ):
            raise UserError(f"{folder / 'model.safetensors'}: not the model of this client's graph")
        return cls(client, graph, shared, positions.union_size, positions.own, model["entity"], model["relation"])

    @property
    def triples(self) -> TripleArray:
        """The triples [n, 3] that were trained on: these are what is to be protected."""
        return self.graph.train

    def pairs(self) -> LeakedPairs:
        """Everything this client would give away if it colluded."""
        at = self.positions
        return LeakedPairs(
            self.client,
            Named(self.graph.entities, self.entities, at if self.shared == "entity" else None),
            Named(self.graph.relations, self.relations, at if self.shared == "relation" else None),
        )

    def unnamed_entities(self, seed: int) -> tuple[Rows, Places]:
        """The rows of all entities in random order, and for each entity at which place [entities] it stands there.

        The rows are what FedR's attack is given; the order is for scoring only.
        """
        order = generator(seed, "unnamed entities", self.client).permutation(len(self.entities))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return self.entities[order], place
