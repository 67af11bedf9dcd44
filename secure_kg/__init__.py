"""Federated knowledge-graph embeddings with secure aggregation. `load_run` opens a finished run, to use its models."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secure_kg.trained.run import load_run as load_run

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`load_run`, imported when it is asked for: a server needs none of it, and the version should cost nothing."""
    if name == "load_run":
        from secure_kg.trained.run import load_run

        return load_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
