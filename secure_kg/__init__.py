"""Federated knowledge-graph embeddings with secure aggregation.

What most people need can be imported from here, and is loaded when it is first asked for:

    simulate                            a whole federated run in one process
    load_run                            the folder of a finished run, to use its models, to audit it, to ask it
    SimulatedRun, RunResult, TrainedRun, ClientModel     what they give
    AuditOutcome, Answers, Picture      findings, answers to a question, and an SVG
    RunConfig, STRATEGIES, MODELS       settings, and what there is to choose from
    UserError                           everything that a user can mend, in one line

`protocols` has the protocols by themselves: `protocols.simulate_sum`, `protocols.simulate_union`.
"""

import importlib
from typing import Any, Final

__version__ = "0.1.0"

# As text: a server needs none of it, and the version should cost nothing. `__init__.pyi` has the types.
_FROM: Final = {
    "Answers": "secure_kg.trained.asking",
    "AuditOutcome": "secure_kg.trained.auditing",
    "ClientModel": "secure_kg.trained.client_model",
    "MODELS": "secure_kg.models.shapes",
    "Picture": "secure_kg.report.picture",
    "RunConfig": "secure_kg.federation.plan.settings",
    "RunResult": "secure_kg.trained.result",
    "STRATEGIES": "secure_kg.federation.plan.strategies",
    "SimulatedRun": "secure_kg.simulation.simulate",
    "TrainedRun": "secure_kg.trained.run",
    "UserError": "secure_kg.foundation.errors",
    "load_run": "secure_kg.trained.run",
    "simulate": "secure_kg.simulation.simulate",
}
__all__ = list(_FROM)


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_FROM[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FROM])
