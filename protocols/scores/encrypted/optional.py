"""Packages of the optional ciphers, imported where a cipher is made and nowhere else."""

import importlib
from typing import Any


def need(package: str, extra: str) -> Any:
    """A package beyond the project's requirements. `ImportError` says in one line how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as problem:
        missing = problem.name or package
        raise ImportError(
            f"scores '{extra}' need {missing}, which is not installed: pip install 'secure-kg[{extra}]'", name=missing
        ) from None
