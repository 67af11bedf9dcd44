"""Where the lines and the result of a training job go: to people, to a file, or as JSON to another program."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from launch.results import show_results
from secure_kg.foundation.console import say
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import write_json

_STANDARD_OUTPUT: Final = "-"


def told_to(path: str | None) -> Callable[[str], None]:
    """Takes lines on how a job goes on. `path`: that of `--json`."""
    return (lambda line: None) if path == _STANDARD_OUTPUT else say


def told_by(path: str | None, *, between: bool = False) -> Callable[[Summary, Path], None]:
    """Takes the summary of a run and its folder. `path`: that of `--json`. `between`: a run between organisations."""

    def tell(summary: Summary, folder: Path) -> None:
        record = {"run": str(folder), **summary.to_json()}
        if path == _STANDARD_OUTPUT:
            say(json.dumps(record, indent=2, allow_nan=False))
            return
        show_results(summary, folder, has_data=not between)
        if path is not None:
            write_json(Path(path), record)

    return tell
