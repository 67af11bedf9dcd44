"""What to do about a folder that is no run, or a run that has not come to its end."""

import difflib
from pathlib import Path
from typing import Final

from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.invocation import command

_OWN_LAUNCHERS: Final = {"fede": "launch.fede", "local": "launch.local"}
"""Of strategies that have one; any job of several processes can be resumed by `launch.fedr_secagg`."""


def no_run_there(path: Path) -> str:
    """About a path where no run is, with a run whose name is near, if there is one."""
    what = "no config.toml there, so it is no run folder" if path.is_dir() else "no such run folder"
    runs = sorted({str(one.parent) for place in (path.parent, Path("runs")) for one in place.glob("*/config.toml")})
    near = difflib.get_close_matches(str(path), runs, n=1) or [one for one in runs if Path(one).name == path.name]
    return f"{path}: {what}" + (f"; did you mean {near[0]}?" if near else "; a run lies in runs/, or where --out said")


def resume_command(path: Path, strategy: str) -> str:
    """The command that continues the run in `path`."""
    launcher = _OWN_LAUNCHERS.get(strategy, "launch.fedr_secagg")
    if (known := STRATEGIES.get(strategy)) is not None:
        launcher = "launch.fedcqa" if known.learner.of_queries else "launch.entire" if known.pools else launcher
    return f"{command(launcher)} --resume {path}"
