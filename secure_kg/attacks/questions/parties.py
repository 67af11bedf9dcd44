"""The clients of a finished run as an attack meets them: their own files, with rules and budgets as the attack says.

Budgets are kept in memory: an attack spends nothing of what the clients of the run have left.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from protocols.foundation.identifiers import PartyId
from protocols.lookups.vectors import VectorBudget
from protocols.scores.budget import Budget, Helpers, MemoryRecord, default_limit, share_of
from protocols.sums.secagg.params import ThreatModel
from secure_kg.data.client_data import load_graph
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.errors import UserError
from secure_kg.queries.retrieval.files import load_knowledge
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.run_terms import query_settings, score_of
from secure_kg.queries.retrieval.session import Budgets
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.runs.run_folder import RunFolder, read_config


@dataclass(frozen=True, slots=True)
class Parties:
    """All clients, one of whom asks."""

    public: PublicTerms
    model: ThreatModel
    knowledge: Mapping[PartyId, Knowledge]
    budgets: Mapping[PartyId, Budgets]

    @classmethod
    def of(cls, public: PublicTerms, model: ThreatModel, knowledge: Mapping[PartyId, Knowledge]) -> "Parties":
        """Without any budget."""
        return cls(public, model, knowledge, dict.fromkeys(knowledge, Budgets()))

    @property
    def own(self) -> Knowledge:
        """The asker's."""
        return self.knowledge[self.public.asker]

    @property
    def others(self) -> dict[PartyId, Knowledge]:
        return {party: one for party, one in self.knowledge.items() if party != self.public.asker}

    def asked_by(self, asker: int) -> "Parties":
        return replace(self, public=replace(self.public, asker=PartyId(asker)))

    def scored_by(self, backend: str, top: int, least: int) -> "Parties":
        return replace(self, public=replace(self.public, backend=backend, top=top, least=least))

    def under(self, rules: Rules) -> "Parties":
        """The same clients, all of whom follow these rules."""
        return replace(self, knowledge={party: _with_rules(one, rules) for party, one in self.knowledge.items()})

    def with_atoms(self, limit: int) -> "Parties":
        """Each client helps to find so many vectors, in equal shares for all askers."""
        share, dim = share_of(limit, len(self.knowledge) - 1), self.public.dim
        return replace(
            self,
            budgets={
                party: Budgets(VectorBudget(MemoryRecord(), limit, dim, table=one.table, share=share))
                for party, one in self.knowledge.items()
            },
        )

    @property
    def usual_means(self) -> int:
        """Queries that a client opens the means of, by default."""
        return default_limit(self.public.dim, Helpers.of(len(self.knowledge), self.model))

    def with_means(self, limit: int) -> "Parties":
        """Each client helps to open the means of so many queries."""
        return replace(
            self, budgets={party: Budgets(means=Budget(MemoryRecord(), limit)) for party in self.knowledge}
        )


def _with_rules(knowledge: Knowledge, rules: Rules) -> Knowledge:
    other = copy.copy(knowledge)  # its stored facts keep their rules: no attack asks for them
    other.rules = rules
    return other


@dataclass(frozen=True, slots=True)
class AttackedRun:
    """A finished run and, to score guesses, the graphs of its clients."""

    path: Path
    encoder: str
    parties: Parties
    graphs: Mapping[PartyId, ClientGraph]

    @classmethod
    def load(cls, path: Path) -> "AttackedRun":
        if not (path / "config.toml").is_file() or RunFolder(path).summary() is None:
            raise UserError(f"{path}: no folder of a finished run")
        config = read_config(path)
        queries, number = query_settings(config), config.clients or 0
        clients = tuple(PartyId(one) for one in range(1, number + 1))
        torch.set_num_threads(1)
        rules = Rules("shared")
        knowledge = {one: load_knowledge(path, config, number, int(one), rules) for one in clients}
        public = PublicTerms(
            clients=clients,
            asker=clients[0],
            union=knowledge[clients[0]].positions.union_size,
            dim=queries.dim,
            score=score_of(config),
            clip=config.clip,
            backend="topk",
            top=10,
            least=1,
        )
        model = replace(config.threat_model, server_apart=True)
        graphs = {one: load_graph(config, number, int(one)) for one in clients}
        return cls(path, queries.encoder, Parties.of(public, model, knowledge), graphs)
