"""Which run a party is at, by the federation's digest: kept in its private folder for its next process."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.private_files import read_private, write_private

_FILE: Final = "runs.json"
_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run by this party's own record. `path`: the run's folder at the server, the party's own at a member."""

    path: Path
    over: bool = False
    """Whether this party's part of it is complete."""


def known_run(site: Path, federation: bytes) -> KnownRun | None:
    """The run that this party was at last, of a federation with these settings."""
    found = _read(site).get(federation.hex())
    return None if found is None else KnownRun(Path(found["path"]), found["over"])


def has_other_run(site: Path, now: Path | None) -> bool:
    """Whether this party was at another run than the one that it goes on with now, with however many members. A folder
    takes part in one federation only."""
    return any(now is None or Path(one["path"]) != now.absolute() for one in _read(site).values())


def rerun_warning(settings: RunConfig) -> str:
    """What is lost when a federation runs again under its seed; empty if its sums hide nothing."""
    if not settings.sum_protocol.hides_contributions:
        return ""
    return (
        f"warning: this federation has run before under seed {settings.seed}, and sites open those sums again over "
        "the same members only; with others, sums are lost (docs/guides/across-organisations.md, Another run)"
    )


def note_run(site: Path, federation: bytes, run: KnownRun) -> None:
    """Written before the run goes on, so that it outlives this process."""
    runs = _read(site)
    entry = {"path": str(run.path.absolute()), "over": run.over}
    if runs.get(federation.hex()) != entry:
        kept = {**{name: one for name, one in runs.items() if name != federation.hex()}, federation.hex(): entry}
        write_private(site / _FILE, (json.dumps(dict(list(kept.items())[-_MOST:]), indent=2) + "\n").encode())


def _read(site: Path) -> dict[str, dict[str, Any]]:
    path = site / _FILE
    if not path.is_symlink() and not path.exists():
        return {}
    try:
        values: Any = json_of(read_private(path))
    except ValueError:
        values = None
    if not isinstance(values, dict) or not all(_is_entry(one) for one in values.values()):
        raise UserError(f"{shown(path)}: not a record of runs; remove it, and say --out")
    return values


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"path", "over"}
        and isinstance(value["path"], str)
        and isinstance(value["over"], bool)
    )
