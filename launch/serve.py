"""The server of a federation between organisations: `python -m launch.serve --help`."""

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from launch.between.run_records import KnownRun, has_other_run, known_run, note_run, rerun_warning
from launch.between.running import add_status_options, run_until_stopped, status_page
from launch.command_line import OneLineParser, require_json, require_writable, run_command
from protocols.foundation.identifiers import PartyId
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.fields import address
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.record import accepted_roster, own_number
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.site_folder import DEFAULT_COORDINATOR
from secure_kg.provisioning.tls import server_tls

if TYPE_CHECKING:
    from protocols.transport.https.server import HttpsServer

_OWN_DATA: Final = "each member's own"
_DESCRIPTION: Final = """\
Serve a federation: wait for its members, carry the run that federation.toml describes to its end, and write the report.

Members connect by themselves; nothing connects to them. A member whose process was started again is taken in again, and
a server that was started again goes on from the last checkpoint: the same command resumes the run. The run folder has
what the server knows and nothing of members. A run that is complete is shown again."""
_EXAMPLES: Final = """\
examples:
  python -m launch.serve coordinator/federation.toml                    the coordinator's machine is the server
  python -m launch.serve federation.toml --site site                    another machine, which has a folder by site new
  python -m launch.serve federation.toml --listen 0.0.0.0:8443          behind a port that is forwarded
  python -m launch.serve federation.toml --wait 60 --out runs/first     begin after a minute if enough are there
  python -m launch.serve federation.toml --questions                    a FedCQA run that is complete: serve questions
  python -m launch.serve federation.toml --questions --record seen      one folder for each session, for launch.audit"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: the run is complete. 2: one line on standard error says what to mend. 130, 143: interrupted."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    again = "the same command goes on from the last checkpoint"
    return run_command(lambda: run_until_stopped(lambda: _run(make_parser().parse_args(argv)), again))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.serve"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("federation", type=Path, metavar="FILE", help="federation.toml, as the coordinator signed it")
    parser.add_argument("--site", type=Path, default=DEFAULT_COORDINATOR, metavar="DIR",
                        help=f"the server's private files [{DEFAULT_COORDINATOR}]")  # fmt: skip
    parser.add_argument("--listen", metavar="HOST:PORT",
                        help="where to listen [every address of this machine, at the federation's port]")  # fmt: skip
    parser.add_argument("--wait", type=float, metavar="SECONDS",
                        help="begin without members that do not come in this time, if enough do [600; of a session of "
                        "questions 20]")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="the run's folder, new or to go on with [that of the run under way]")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write summary.json to FILE, too; - for standard output alone")
    parser.add_argument("--questions", action="store_true",
                        help="of a FedCQA run that is complete: serve questions about it until stopped")  # fmt: skip
    parser.add_argument("--record", type=Path, metavar="DIR",
                        help="of --questions: record each session as the server sees it, for launch.audit")  # fmt: skip
    add_status_options(parser)
    return parser


def _run(options: argparse.Namespace) -> int:
    os.umask(0o077)  # the run's folder has metrics and transcripts of all members
    require_json(options.json)
    if options.wait is not None and not options.wait >= 0:
        raise UserError("--wait must not be negative")
    if options.record is not None and not options.questions:
        raise UserError("--record goes with --questions; a run is recorded by the settings of the federation")
    roster = accepted_roster(options.federation, options.site)
    if number := own_number(roster, options.site):
        raise UserError(f"{shown(options.site)}: this is member {number}, not the server; {command('launch.join')}")
    if not roster.members:
        raise UserError(f"{shown(options.federation)}: has no members yet")
    listen = address(options.listen) if options.listen else ("0.0.0.0", address(roster.address)[1])
    path = _path(options, roster)
    if options.questions:
        return _questions(options, roster, listen, path)
    if _is_over(path):
        return _again(options, roster, listen, path)
    require_writable(path / "config.toml")  # now, not after members have been waited for
    return _serve(options, roster, listen, path)


def _path(options: argparse.Namespace, roster: Roster) -> Path:
    """The run's folder: as asked for, that of the run under way, or a new one."""
    from launch.hosts.job import new_run_path
    from secure_kg.runs.run_folder import read_config

    known = known_run(options.site, roster.digest)
    if options.out is None and known is None:
        return new_run_path(roster.settings)
    path: Path = options.out if options.out is not None or known is None else known.path
    if (path / "config.toml").exists() and read_config(path).digest() != roster.settings.digest():
        raise UserError(f"{path}: has a run with other settings than {shown(options.federation)}; say another --out")
    return path


def _is_over(path: Path) -> bool:
    from secure_kg.runs.run_folder import RunFolder

    return RunFolder(path).summary() is not None


def _again(options: argparse.Namespace, roster: Roster, listen: tuple[str, int], path: Path) -> int:
    """A run that is complete is shown; members that come after its end hear so."""
    from launch.hosts.network import tell_the_end
    from launch.telling import told_by, told_to
    from protocols.foundation.errors import ProtocolError
    from secure_kg.runs.run_folder import RunFolder

    if (summary := RunFolder(path).summary()) is None:
        raise UserError(f"{path}: its summary is gone")
    told_to(options.json)("this run is complete; --out with another folder begins a new one")
    told_by(options.json, between=True)(summary, path)
    with suppress(ProtocolError), _server(options, roster, listen) as server:
        tell_the_end(server, _standing(roster))
    return 0


def _serve(options: argparse.Namespace, roster: Roster, listen: tuple[str, int], path: Path) -> int:
    from launch.hosts.network import USUAL_WAIT, Serving, serve_run
    from launch.status.board import StatusBoard
    from launch.telling import told_by, told_to

    config = dataclasses.replace(roster.settings, client_data=_OWN_DATA)
    names = {int(member.number): member.name for member in roster.members}
    board, tell = StatusBoard(0, config, names=names), told_to(options.json)
    warning = rerun_warning(config)
    another = bool(warning) and has_other_run(options.site, path)
    serving = Serving(
        config=config,
        path=path,
        report=board.wrap(tell),
        show=told_by(options.json, between=True),
        board=board,
        names=names,
        revoked=frozenset(member.number for member in roster.members if member.revoked),
        wait=USUAL_WAIT if options.wait is None else options.wait,
        without_nobody=another,
    )
    known = known_run(options.site, roster.digest)
    with status_page(board, options), _server(options, roster, listen) as server:
        note_run(options.site, roster.digest, KnownRun(path))
        tell(f"serving {len(_standing(roster))} members at {roster.server_url}; run folder: {path}")
        if another:
            tell(warning)
        if (known is not None and known.path == path.absolute()) or (path / "config.toml").exists():
            tell(_from_where(path))
        serve_run(serving, server)
    return 0


def _from_where(path: Path) -> str:
    """Of a run that was begun before."""
    from secure_kg.runs.checkpoint import last_complete

    done = last_complete(path).round
    return f"goes on from the checkpoint of round {done}" if done else "begins anew: no checkpoint yet"


def _questions(options: argparse.Namespace, roster: Roster, listen: tuple[str, int], path: Path) -> int:
    from launch.between.serving_questions import question_server

    serving, serve_questions = question_server(options, roster, path)
    with _server(options, roster, listen) as server:
        say(f"serving questions about {path} to {len(_standing(roster))} members at {roster.server_url}")
        serve_questions(serving, server)
    return 0


def _standing(roster: Roster) -> frozenset[PartyId]:
    return frozenset(member.number for member in roster.members if not member.revoked)


def _server(options: argparse.Namespace, roster: Roster, listen: tuple[str, int]) -> "HttpsServer":
    from protocols.transport.https.server import HttpsServer

    tls = server_tls(roster, options.site)
    members = member_of(roster, options.federation, tls=tls, report=say)
    server = HttpsServer(listen, tls, members, [member.number for member in roster.members], roster.digest)
    server.notice = say
    return server


if __name__ == "__main__":
    sys.exit(main())
