"""A member of a federation between organisations takes part in its run: `python -m launch.join --help`."""

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from launch.answering import add_answer_options, answer_others
from launch.between.consent import note_consent, require_consent, show_disclosures
from launch.between.run_records import KnownRun, has_other_run, known_run, note_run, rerun_warning
from launch.between.running import add_status_options, run_until_stopped, status_page
from launch.command_line import OneLineParser, run_command
from protocols.foundation.identifiers import SERVER, PartyId
from secure_kg.federation.plan.settings import Device, RunConfig
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.record import accepted_roster, own_number
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.signing import KEYS, keys_folder
from secure_kg.provisioning.site_folder import DEFAULT_SITE
from secure_kg.provisioning.tls import client_tls

if TYPE_CHECKING:
    from launch.hosts.network_member import Joining
    from launch.status.board import StatusBoard
    from secure_kg.federation.client.member_site import MemberSite
    from secure_kg.federation.server.server import Report

_DESCRIPTION: Final = """\
Take part in the run of a federation with this site's own triples, which stay here.

All settings are those of federation.toml, which the coordinator has signed. The terminal shows what the run is about to
disclose, before anything leaves. The site connects outwards to the server and nothing connects to it; a broken link is
mended by itself. After an interruption the same command goes on: the site's own files say from where."""
_EXAMPLES: Final = """\
examples:
  python -m launch.join federation.toml --data mygraph.nt               one file of triples, divided here 80/10/10
  python -m launch.join federation.toml --data parts/client-1           a folder with train, valid and test
  python -m launch.join federation.toml --data mygraph.nt --consent     ask at the terminal whether it may begin
  python -m launch.join federation.toml --answer                        answer questions about a run that is complete
  python -m launch.join federation.toml --answer --atom-budget 200 --name-policy none    by rules of this site's own"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: this site's part is complete. 2: one line on standard error says what to mend. 130, 143: interrupted."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as under mpirun: the same result to the last bit
    again = "the same command goes on where it was"
    return run_command(lambda: run_until_stopped(lambda: _run(make_parser().parse_args(argv)), again))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.join"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("federation", type=Path, metavar="FILE", help="federation.toml, as it was passed on")
    parser.add_argument("--data", type=Path, metavar="PATH",
                        help="this site's triples: a file (docs/data.md), or a folder with parts")  # fmt: skip
    parser.add_argument("--columns", default="", metavar="TEXT",
                        help="of a table: head,relation,tail, as names or numbers of its columns")  # fmt: skip
    parser.add_argument("--site", type=Path, default=DEFAULT_SITE, metavar="DIR",
                        help=f"this site's private files [{DEFAULT_SITE}]")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR",
                        help="folder for this site's own files of its runs: DIR/RUN/clients/K [runs]")  # fmt: skip
    parser.add_argument("--device", choices=get_args(Device), default="auto", help="where to train [auto]")
    parser.add_argument("--consent", action="store_true",
                        help="ask before the first round; the answer is noted for these settings")  # fmt: skip
    parser.add_argument("--again", action="store_true",
                        help="take part in another run with the same settings as the last one here")  # fmt: skip
    parser.add_argument("--other-members", action="store_true",
                        help="take part though another organisation has the place of one with which this site has "
                             "trained under this seed: the sums of both runs show the difference; with a member "
                             "missing they are lost")  # fmt: skip
    add_status_options(parser)
    add_answer_options(parser)
    return parser


def _run(options: argparse.Namespace) -> int:
    os.umask(0o077)  # what this site writes is for nobody else
    if options.answer:
        return answer_others(options)
    if options.data is None:
        raise UserError("--data PATH is missing: this site's triples; see --help")
    roster = accepted_roster(options.federation, options.site)
    number = own_number(roster, options.site)
    if number == SERVER:
        raise UserError(f"{shown(options.site)}: this is the server, not a member; {command('launch.serve')}")
    known = known_run(options.site, roster.digest)
    if known is not None and known.over and not options.again:
        say(f"this site's part of the run is complete: {known.path}; --again takes part in another one")
        return 0
    config = _config(options, roster)
    from secure_kg.runs.client_folder import alone

    with alone(options.site):  # two processes of one site would supersede each other again and again
        return _join(options, roster, number, config)


def _config(options: argparse.Namespace, roster: Roster) -> RunConfig:
    """The federation's settings with what concerns this site alone."""
    from secure_kg.data.triples import shown as shown_path

    if not options.data.exists():
        raise UserError(f"--data {shown_path(options.data)}: no such file or folder")
    keys = str(keys_folder(roster, options.site)) if roster.settings.adversary == "active" else None
    data = str(options.data.absolute())
    return dataclasses.replace(
        roster.settings, client_data=data, columns=options.columns, device=options.device, keys=keys
    )


def _join(options: argparse.Namespace, roster: Roster, number: PartyId, config: RunConfig) -> int:
    from launch.between.own_results import own_results
    from launch.hosts.network_member import Progress, join_run
    from launch.status.board import StatusBoard
    from secure_kg.federation.client.take_part import Participation

    names = {int(member.number): member.name for member in roster.members}
    board = StatusBoard(int(number), config, names=names)
    report = board.wrap(say)
    site = _site(options, roster, number, config, report)
    say(f"{names[number]} is member {number} of {len(names)} in the federation at {roster.server_url}")
    if (warning := rerun_warning(config)) and has_other_run(options.site, site.begun[0] if site.begun else None):
        say(warning)
    show_disclosures(config)
    site.graph()  # a mistake in the data is told now, and not when all others have come
    if options.consent:
        require_consent(config, options.site, names[number])
    note_consent(config, options.site)
    progress = Progress(config.rounds, report, board)
    with status_page(board, options), progress:
        site = dataclasses.replace(site, follow=progress.follow)
        ended = join_run(_joining(options, roster, site, report, board))
        known = known_run(options.site, roster.digest) or KnownRun(options.out)
        note_run(options.site, roster.digest, KnownRun(known.path, over=True))
        board.done()
        missing = "" if ended is Participation.ALL_PRESENT else "; some members were missing at its end"
        say(f"the run is over{missing}; this site's model and results: {shown(known.path)}")
        for line in own_results(known.path):
            say(line)
    return 0


def _site(
    options: argparse.Namespace, roster: Roster, number: PartyId, config: RunConfig, report: "Report"
) -> "MemberSite":
    from secure_kg.federation.client.member_site import MemberSite
    from secure_kg.federation.client.members import Members

    known = known_run(options.site, roster.digest)
    return MemberSite(
        config=config,
        number=int(number),
        clients=len(roster.members),
        runs=options.out,
        out=None,
        resume=True,
        keys=options.site / KEYS,
        report=report,
        members=Members.of({one.number: one.identity for one in roster.members}, others_allowed=options.other_members),
        begun=[known.path] if known is not None and not known.over and not options.again else [],
        complete=known.path if known is not None and known.over else None,
        named=lambda folder: note_run(options.site, roster.digest, KnownRun(folder)),
    )


def _joining(
    options: argparse.Namespace, roster: Roster, site: "MemberSite", report: "Report", board: "StatusBoard"
) -> "Joining":
    from launch.hosts.network_member import Joining
    from protocols.transport.https.client import HttpsClientTransport

    def link() -> HttpsClientTransport:
        tls, number = client_tls(roster, options.site), PartyId(site.number)
        return HttpsClientTransport(roster.server_url, tls, number, roster.digest, notice=report)

    def has_results() -> bool:
        known = known_run(options.site, roster.digest)
        return known is not None and (known.path / "result.json").exists()

    return Joining(config=site.config, site=site, link=link, report=report, board=board, has_results=has_results)


if __name__ == "__main__":
    sys.exit(main())
