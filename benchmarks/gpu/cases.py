"""Every learner that the registries name, small, so that one that is added there is compared with its twin at once."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.plan.by_name import config_of
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.learner import Learner
from secure_kg.models.networks.kinds import NETWORKS
from secure_kg.models.queries.shapes import ENCODERS
from secure_kg.models.shapes import MODELS

CLIENTS: Final = 3
_SMALL: Final = {
    **{"dim": 8, "batch_size": 192, "local_epochs": 1, "negatives": 6, "lr": 0.01},
    **{"local_steps": 2, "eval_queries": 4, "train_types": "1p,2i,ip", "test_types": "1p,2u"},
    **{"decoder_epochs": 1, "decoder_halving": 1},
}
"""Settings by name; a learner takes those that it has."""
_ONE_STEP: Final = {"batch_size": 4096, "local_epochs": 1, "local_steps": 1}


@dataclass(frozen=True, slots=True)
class Case:
    """One learner."""

    name: str
    config: RunConfig

    def make(self, device: torch.device, graph: ClientGraph | None = None, client: int = 1) -> Learner:
        own = graph if graph is not None else graphs(self.config)[client - 1]
        return RunPlan(self.config, CLIENTS).learner.make(self.config, own, client, device)

    def in_one_step(self) -> "Case":
        """The same with one optimiser step per round, where the learner lets one say so."""
        parts = {}
        for part in ("training", "queries", "network"):
            if (settings := getattr(self.config, part, None)) is not None:
                one_step = {name: value for name, value in _ONE_STEP.items() if name in _names_of(settings)}
                parts[part] = dataclasses.replace(settings, **one_step)
        return Case(self.name, dataclasses.replace(self.config, **parts))


def graphs(config: RunConfig) -> list[ClientGraph]:
    """Of the clients of a small federation."""
    return partition(load_source("nations"), CLIENTS, config.by, config.seed)


def learners(**changes: Any) -> list[Case]:
    """Models of embeddings, graph networks, and encoders of queries. `changes`: settings, for those that have them."""
    outer = {"dataset": "nations", "clients": CLIENTS}
    of_models = dict.fromkeys(MODELS, _names_of(RunConfig().training))
    of_models |= {name: kind.options for name, kind in NETWORKS.items()}
    of_queries = _names_of(RunConfig(strategy="fedcqa").queries)
    return [
        *(
            Case(name, config_of({**outer, "strategy": "fedr", "model": name, **_own(options, changes)}, False))
            for name, options in of_models.items()
        ),
        *(
            Case(name, config_of({**outer, "strategy": "fedcqa", "encoder": name, **_own(of_queries, changes)}, True))
            for name in ENCODERS
        ),
    ]


def _names_of(settings: Any) -> tuple[str, ...]:
    return tuple(entry.name for entry in dataclasses.fields(settings))


def _own(names: tuple[str, ...], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**_SMALL, **changes}.items() if name in names}
