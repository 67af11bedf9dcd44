"""What a member's console says of its results: of its own test part, and of the federation where it alone can read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from secure_kg.runs.records.client_result import ClientResult, FederationResult
from secure_kg.runs.records.summary import TITLES, shown, written
from secure_kg.runs.run_folder import read_record


def own_results(folder: Path) -> Iterator[str]:
    """`folder`: the member's own of a run."""
    if (path := folder / "result.json").exists():
        yield f"on this site's own test part: {_told(read_record(path, ClientResult).figures)}"
    if (path := folder / "federation.json").exists():
        told = _told(read_record(path, FederationResult).figures)
        yield f"on those of all members, which the server cannot read: {told}"


def _told(figures: Mapping[str, Any]) -> str:
    names = [name for name in shown(dict(figures)) if figures.get(name) is not None]
    return ", ".join(f"{TITLES.get(name, name)} {written(name, figures[name])}" for name in names) or "no figures"
