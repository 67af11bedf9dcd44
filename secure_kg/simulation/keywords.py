"""Settings by keyword: those of the command line, under the same names with underscores."""

import dataclasses
import difflib
import re
from collections.abc import Mapping
from typing import Any, Final

from secure_kg.federation.plan.by_name import PRIVACY_FIELDS, check_privacy, model_name, resolved
from secure_kg.federation.plan.presets import PRESETS, QUERY_PRESETS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.federation.plan.typed_fields import scalar_type
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.config import NetworkConfig
from secure_kg.models.networks.kinds import NETWORKS
from secure_kg.privacy.run_config import PrivacyConfig

QUERY_DEFAULTS: Final[Mapping[str, Any]] = {"aggregation": "secret", "by": "relations"}
"""Of strategies that train on logical queries, as `launch.fedcqa` has them."""
POOLED_DEFAULTS: Final[Mapping[str, Any]] = {"aggregation": "plain", "min_participants": 1}
"""Of strategies that pool all triples, as `launch.entire` has them."""
_ELSEWHERE: Final = ("training", "queries", "network", "privacy", "format", "dataset", "client_data", "clients")
"""Fields that a caller gives in another way, or not at all."""
_WORDS: Final = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}
_OPTION: Final = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def settings_of(keywords: Mapping[str, Any], data: Mapping[str, Any]) -> RunConfig:
    """The settings of a run. `data`: where its triples are, by `dataset` or `client_data`. `UserError` in one line."""
    given = {name: _plain(value) for name, value in keywords.items() if value is not None}
    strategy = given.get("strategy", RunConfig().strategy)
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise UserError(f"strategy must be one of {', '.join(STRATEGIES)}")
    pools, of_queries = STRATEGIES[strategy].pools, STRATEGIES[strategy].learner.of_queries
    preset = given.pop("preset", "auto")
    presets = QUERY_PRESETS if of_queries else PRESETS
    if preset != "auto" and preset not in presets:
        raise UserError(f"preset must be one of auto, {', '.join(presets)}")
    _check_names(given, of_queries)
    given = _typed(given, of_queries)
    try:
        if isinstance(given.get("model"), str):
            given["model"] = model_name(given["model"])
        check_privacy(given if preset == "auto" else {**given, "preset": preset})
        defaults = {**(QUERY_DEFAULTS if of_queries else {}), **(POOLED_DEFAULTS if pools else {})}
        return resolved({**given, **data}, defaults, of_queries=of_queries, preset=preset)
    except UserError as problem:
        raise type(problem)(in_keywords(str(problem))) from None


def in_keywords(text: str) -> str:
    """A line about options of a command as one about keywords: `--max-dropout` is `max_dropout`."""
    known = _known(of_queries=True) | _known(of_queries=False) | set(_ELSEWHERE)

    def keyword(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return name if name in known else found[0]

    return _OPTION.sub(keyword, text)


def _check_names(given: Mapping[str, Any], of_queries: bool) -> None:
    known = _known(of_queries)
    for name in given:
        if name in ("dataset", "client_data"):
            raise UserError(f"{name}: the data are the first argument, a name, a path or lists of triples")
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
            other = _known(not of_queries)
            kind = "triples" if of_queries else "queries"
            why = f"it is for strategies that train on {kind}" if name in other else ""
            hint = why or (f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}")
            raise UserError(f"unknown setting {name}; {hint}")


def _typed(given: Mapping[str, Any], of_queries: bool) -> dict[str, Any]:
    """The values in the types of their fields: a whole number will do where any number is asked for."""
    owners = [RunConfig, *_trained_by(of_queries), PrivacyConfig]
    kinds = {entry.name: scalar_type(entry.type) for owner in owners for entry in dataclasses.fields(owner)}
    typed = {}
    for name, value in given.items():
        kind = kinds[name]
        options = kind if isinstance(kind, tuple) else (kind,)
        if float in options and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, options) or isinstance(value, bool) != (bool in options):
            raise UserError(f"{name} must be {_WORDS[options[0]]}, not {value!r}")
        typed[name] = value
    return typed


def _known(of_queries: bool) -> set[str]:
    owners = [RunConfig, *_trained_by(of_queries)]
    names = {entry.name for owner in owners for entry in dataclasses.fields(owner)} - set(_ELSEWHERE)
    return names if of_queries else names | PRIVACY_FIELDS


def _trained_by(of_queries: bool) -> list[type[QueryConfig | TrainingConfig | NetworkConfig]]:
    """Settings of training, of every kind that there is."""
    return [QueryConfig] if of_queries else [*(kind.settings for kind in NETWORKS.values()), TrainingConfig]


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
