"""The one `main` behind the launchers of training jobs; each launcher says what it is and what its defaults are."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launch.commands import restarted
from launch.hosts.registry import chosen_host
from secure_kg.foundation.invocation import command


@dataclass(frozen=True, slots=True)
class Launcher:
    """A command, `python -m <module>`. `defaults` are settings that differ from those of `RunConfig`."""

    module: str
    description: str
    epilog: str
    defaults: Mapping[str, Any]

    @property
    def prog(self) -> str:
        """The command as the user calls it."""
        return command(self.module)


def run(launcher: Launcher, argv: Sequence[str] | None) -> int:
    """The way of every process through a job. 0: it is done. 2: one line on standard error says what to mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    host = chosen_host(arguments)
    speaks = host.enter()  # before anything heavy is imported
    from launch.command_line import require_json
    from launch.options import parse
    from secure_kg.foundation.console import fail
    from secure_kg.foundation.errors import UserError

    # Six parties share the cores of one machine; a thread pool in each would only make them wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        if not speaks and {"-h", "--help"} & set(arguments):
            return 0
        plan = parse(arguments, launcher.prog, launcher.description, launcher.epilog, launcher.defaults)
        from launch.completed import finished_before, show_again
        from launch.hosts.job import Job
        from launch.telling import told_by, told_to

        if speaks:
            require_json(plan.json)
        if finished_before(plan):
            if speaks:
                show_again(plan)
            return 0
        typed = shlex.join([*launcher.prog.split(), *arguments])
        restart = restarted(launcher.module, arguments)
        return host.run(Job(plan, typed, restart, told_by(plan.json), told_to(plan.json)))
    except UserError as problem:
        if speaks:
            fail(str(problem))
        return 2 if speaks else 0  # one process speaks and fails for the job; another one must not end it before
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
