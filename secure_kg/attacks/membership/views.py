"""What each attacker on a staged federation has, in the attacking client's own ids."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.membership import client_attacks, server_attacks
from secure_kg.attacks.membership.measures import Scores
from secure_kg.attacks.membership.plausibility import Tables
from secure_kg.attacks.membership.staged import ATTACKER, BYSTANDER, VICTIM, Staged
from secure_kg.attacks.membership.targets import Names
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.models.shapes import initial_range


class Views:
    """What each attacker has, in the attacker's own ids."""

    def __init__(self, config: RunConfig, graphs: Sequence[ClientGraph], staged: Staged) -> None:
        self.training, self.clients, self.staged = config.training, len(graphs), staged
        self._graphs, self._attacker, self._private = graphs, graphs[ATTACKER - 1], config.privacy is not None
        if self._private:  # every client adds to every row
            self.holders = np.full(len(self._attacker.entities), self.clients, dtype=np.int64)
            return
        training = self.training
        kept = staged.kept[ATTACKER]
        span = initial_range(training.margin, training.dim)
        first = kept.uploaded[AGREEING_ROUND].entities
        self.holders = client_attacks.holders_by_first_means(first, kept.means[AGREEING_ROUND], span, self.clients)

    def own(self, round: int) -> Tables:
        return self.staged.kept[ATTACKER].uploaded[round]

    def means(self, round: int) -> Rows:
        return self.staged.kept[ATTACKER].means[round]

    def others(self, round: int) -> Rows:
        """Without the attacker's own noise, if there is any: it knows that."""
        sent = self.own(round).entities + self.staged.noise.get(round, np.float32(0))
        return client_attacks.others_mean(sent, self.means(round), self.holders)

    def upload(self, client: int, round: int) -> Rows | None:
        return self.staged.server.upload_of(client, round, self.staged.places)

    def server_means(self, round: int) -> Rows | None:
        table = self.staged.server.means.get(round)
        return None if table is None else table[self.staged.places]

    def white_box(self, round: int) -> Tables:
        """The victim's rows; zero where it has none. Under differential privacy those of the model that it keeps: its
        contribution before noise is no part of what a bound is about."""
        graph, kept = self._graphs[VICTIM - 1], self.staged.kept[VICTIM]
        tables = (kept.held if self._private else kept.uploaded)[round]
        names, own = Names.of(graph, self._attacker), self.own(round)
        entities, relations = np.zeros_like(own.entities), np.zeros_like(own.relations)
        entities[names.entities[names.entities >= 0]] = tables.entities[names.entities >= 0]
        relations[names.relations[names.relations >= 0]] = tables.relations[names.relations >= 0]
        return Tables(entities, relations)

    def by_server(self, rows: Rows, targets: TripleArray, round: int) -> Scores:
        """Auxiliary pairs and relation rows are the attacker's own: it is on the server's side."""
        own = self.own(round).relations
        return server_attacks.by_relations(rows, own, self._attacker.train, targets, self.training)

    def by_upload(self, rows: Rows, targets: TripleArray, round: int) -> Scores:
        """The same of one client's upload: nobody trains on a triple with an entity that it has no row of."""
        there = np.asarray(rows.any(axis=1))[targets[:, [0, 2]]].all(axis=1)
        return np.where(there, self.by_server(rows, targets, round), -np.inf)

    def at_bystander(self, triples: TripleArray) -> npt.NDArray[np.bool_]:
        """By the truth: of which triples [n, 3] the bystander has both entities."""
        places = Names.of(self._graphs[BYSTANDER - 1], self._attacker).entities
        return np.asarray(np.isin(triples[:, [0, 2]], places).all(axis=1))

    def holders_told(self) -> float | None:
        """By the truth; None where all clients add to all rows."""
        if self._private:
            return None
        true = np.ones(len(self._attacker.entities), dtype=np.int64)
        for graph in self._graphs[1:]:
            places = Names.of(graph, self._attacker).entities
            true[places[places >= 0]] += 1
        shared = true > 1
        return float((self.holders == true)[shared].mean()) if shared.any() else 0.0
