"""Kinds of graph networks by name, as data that every party can read without loading a model."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from secure_kg.foundation.errors import UserError
from secure_kg.models.networks.config import NetworkConfig
from secure_kg.models.networks.kbgat_config import KbgatConfig
from secure_kg.models.networks.noge_config import NogeConfig


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """One kind of graph network."""

    name: str
    settings: type[NetworkConfig]
    learner: str
    """`module:class` of the learner; imported by clients only. Called as `secure_kg.learning.learner.Factory`."""
    decoder: str
    """`module:function` that makes the decoder from the settings, for a trained model; imported by clients only."""
    small: Mapping[str, Any] = field(default_factory=dict)
    """The preset for graphs of a few hundred entities."""

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """By name; `paper` is what the settings default to."""
        return {"paper": {}, "small": dict(self.small)}

    @property
    def options(self) -> tuple[str, ...]:
        """Names of its settings."""
        return tuple(entry.name for entry in dataclasses.fields(self.settings))


NETWORKS: Final[dict[str, NetworkKind]] = {
    kind.name: kind
    for kind in (
        NetworkKind(
            "NoGE",
            NogeConfig,
            learner="secure_kg.learning.networks.noge:NogeLearner",
            decoder="secure_kg.models.networks.noge:make_decoder",
            small={"rounds": 60, "dim": 64, "batch_size": 256},
        ),
        NetworkKind(
            "KBGAT",
            KbgatConfig,
            learner="secure_kg.learning.networks.kbgat:KbgatLearner",
            decoder="secure_kg.models.networks.kbgat:make_decoder",
            small={"rounds": 10, "local_epochs": 50, "decoder_epochs": 50, "decoder_halving": 10, "eval_every": 2},
        ),
    )
}


def network_kind(name: str) -> NetworkKind:
    """`UserError` names the choices."""
    if name not in NETWORKS:
        raise UserError(f"unknown graph network; choose one of {', '.join(NETWORKS)}")
    return NETWORKS[name]


def imported(path: str) -> Any:
    """What `module:name` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
