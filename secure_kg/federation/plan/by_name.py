"""Settings of a run by their names in one flat table, as a command line or a caller gives them, and presets with them.

Free of torch: the server reads its command line, too.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

from protocols.sums.interface import WIDEST_GRID
from secure_kg.federation.plan.count_plan import COUNT_ROUNDS
from secure_kg.federation.plan.presets import PRESETS, QUERY_PRESETS, preset_for
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, learner_of
from secure_kg.federation.plan.typed_fields import flag
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.kinds import NETWORKS, NetworkKind
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.run_config import MECHANISMS, OWN_OPTIONS, PrivacyConfig

PRIVACY_FIELDS: Final = frozenset(entry.name for entry in dataclasses.fields(PrivacyConfig))
_GROWTH: Final = 16
_OF_QUERIES: Final = frozenset(entry.name for entry in dataclasses.fields(QueryConfig))
OPTIONS: Final[dict[str | None, frozenset[str]]] = {
    None: frozenset(entry.name for entry in dataclasses.fields(TrainingConfig)),
    **{kind.name: frozenset(kind.options) for kind in NETWORKS.values()},
}
"""Names of the settings of a network's training; under None those of models of embeddings."""
_OF_ANY_MODEL: Final = frozenset(name for names in OPTIONS.values() for name in names)
_OF_VALIDATION: Final = ("patience", "eval_every")
_OF_TRAINING: Final = tuple(
    entry.name for entry in dataclasses.fields(TrainingConfig) if entry.name != "eval_megabytes"
)


def resolved(
    given: Mapping[str, Any], defaults: Mapping[str, Any], *, of_queries: bool, preset: str = "auto"
) -> RunConfig:
    """The settings that are `given`, over those that a mechanism fixes, over the preset's, over `defaults`."""
    network = None if of_queries else NETWORKS.get(given.get("model", ""))
    if not of_queries:
        check_options(given)
    if network is not None:
        _check_network(network, given, preset)
    presets = network.presets if network is not None else QUERY_PRESETS if of_queries else PRESETS
    name = preset_for(given.get("dataset", RunConfig().dataset), presets) if preset == "auto" else preset
    if preset == "auto" and "dp" in given:
        name = "private"
    values = {**defaults, **presets[name], **_fixed_by(given), **given}
    config = config_of(values, of_queries)
    return config if "clip" in values else dataclasses.replace(config, clip=usual_clip(config))


def usual_clip(config: RunConfig) -> float:
    """The bound of shared values unless one is given: for narrow rings, whose units are coarse, as tight as will do.

    Rows begin uniform in a public range and grow by training; measured for embeddings, by less than `_GROWTH` times.
    """
    if config.ring_bits > WIDEST_GRID or config.network is not None:
        return config.clip
    blocks = learner_of(config).blocks(config, STRATEGIES[config.strategy])
    span = max((block.span for block in blocks), default=0.0)
    if not span:
        return config.clip
    return min(config.clip, float(2.0 ** math.ceil(math.log2(_GROWTH * span))))


def config_of(values: Mapping[str, Any], of_queries: bool) -> RunConfig:
    """The typed settings. `of_queries`: whether the run trains on logical queries."""
    network = None if of_queries else NETWORKS.get(values.get("model", ""))
    names = OPTIONS[None if network is None else network.name] if not of_queries else _OF_QUERIES
    inner = {name: value for name, value in values.items() if name in names}
    outer = {name: value for name, value in values.items() if name not in names and name not in PRIVACY_FIELDS}
    if of_queries:
        return RunConfig(**outer, queries=QueryConfig(**inner))
    if network is not None:
        return RunConfig(**outer, network=network.settings(**inner), privacy=_privacy_of(values))
    return RunConfig(**outer, training=TrainingConfig(**inner), privacy=_privacy_of(values))


def model_name(text: str) -> str:
    """A model's own spelling, whatever the case of the letters; `UserError` for one that there is not."""
    known = (*MODELS, *NETWORKS)
    for model in known:
        if model.lower() == text.lower():
            return model
    raise UserError(f"--model {text}: not one of {', '.join(known).lower()}")


def check_options(given: Mapping[str, Any]) -> None:
    """`UserError` for settings that the model has no use for. A model of embeddings has none for those of networks."""
    model = str(given.get("model", TrainingConfig().model))
    own = OPTIONS[model if model in NETWORKS else None]
    for name in given:
        if name not in own and name in _OF_ANY_MODEL:
            owners = [kind.name.lower() for kind in NETWORKS.values() if name in kind.options]
            whose = f"it is for {' or '.join(owners)}" if owners and name not in OPTIONS[None] else "see --help"
            raise UserError(f"{flag(name)}: --model {model.lower()} has no such setting; {whose}")


def check_privacy(given: Mapping[str, Any]) -> None:
    """`given`: settings as they were given, a preset among them. `UserError` for those that have no meaning beside the
    others."""
    alone = [entry.name for entry in dataclasses.fields(PrivacyConfig) if entry.name in given and entry.name != "dp"]
    if "dp" not in given:
        if alone:
            owners = OWN_OPTIONS.get(alone[0], MECHANISMS)
            raise UserError(f"{flag(alone[0])} is for private training: give --dp {' or '.join(owners)}")
        return
    for name, mechanisms in OWN_OPTIONS.items():
        if name in given and given["dp"] not in mechanisms:
            raise UserError(f"{flag(name)} is for --dp {' or '.join(mechanisms)}, not for {given['dp']}")
    if given["dp"] == "counts":
        for name in (*_OF_TRAINING, "preset", "clip"):
            if name in given:
                raise UserError(f"{flag(name)}: --dp counts trains nothing, and has no such setting")
    if not given.get("public_evaluation", False):
        for name in _OF_VALIDATION:
            if name in given:
                raise UserError(f"{flag(name)}: under --dp validation needs --public-evaluation")


def _check_network(network: NetworkKind, given: Mapping[str, Any], preset: str) -> None:
    """Refuse what a run of a graph network has no room for."""
    name = f"--model {network.name.lower()}"
    if "dp" in given:
        raise UserError(f"--dp: private gradients are those of embedding models, and {name} is a graph network")
    if preset != "auto" and preset not in network.presets:
        raise UserError(f"--preset {preset} is for embedding models; {name} has {', '.join(network.presets)}")


def _fixed_by(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a mechanism leaves no choice of."""
    return {"rounds": COUNT_ROUNDS} if given.get("dp") == "counts" else {}


def _privacy_of(values: Mapping[str, Any]) -> PrivacyConfig | None:
    """The settings among all values by name; None if nothing asks for private training."""
    own = {name: value for name, value in values.items() if name in PRIVACY_FIELDS}
    return PrivacyConfig(**own) if "dp" in own else None
