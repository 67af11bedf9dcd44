"""Cryptographic protocols between one server and its clients.

This package knows bytes, numpy arrays and parties; it knows nothing of graphs or models.
Every protocol assumes a semi-honest server unless its own docstring says otherwise; each states its parties,
adversary, what it reveals, what it assumes and what it does not cover. `protocols/README.md` lists the modules
in dependency order.

What most people need can be imported from here, and is loaded when it is first asked for:

    simulate_sum, simulate_union                     a protocol tried out in one process
    AGGREGATIONS, ALIGNMENTS, SCORES                 what there is, by name, with what it discloses
    ThreatModel, SumLayout, SumTerms, Contribution   the terms of a sum
    Transport, InProcessNetwork, run_in_process      parties and how they reach each other
    ProtocolError                                    everything that can go wrong in a conversation
"""

import importlib
from typing import Any, Final

# As text, so that the package imports nothing of what is below it. `__init__.pyi` has the types.
_FROM: Final = {
    "AGGREGATIONS": "protocols.registry",
    "ALIGNMENTS": "protocols.registry",
    "SCORES": "protocols.registry",
    "Contribution": "protocols.sums.interface",
    "InProcessNetwork": "protocols.transport.in_process",
    "ProtocolError": "protocols.foundation.errors",
    "SimulatedSum": "protocols.simulation.sums",
    "SimulatedUnion": "protocols.simulation.unions",
    "SumLayout": "protocols.sums.interface",
    "SumTerms": "protocols.sums.terms",
    "ThreatModel": "protocols.sums.secagg.params",
    "Transport": "protocols.transport.base",
    "run_in_process": "protocols.transport.in_threads",
    "simulate_sum": "protocols.simulation.sums",
    "simulate_union": "protocols.simulation.unions",
}
__all__ = list(_FROM)


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_FROM[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FROM])
