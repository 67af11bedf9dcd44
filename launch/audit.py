"""Audit of what the server of a run really observed: `python -m launch.audit RUN --out DIR`."""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from launch.command_line import OneLineParser, require_json, require_writable, run_command
from protocols.foundation.identifiers import PartyId
from protocols.session.identities import IdentityError, parse_directory
from secure_kg.attacks.result import AttackResult
from secure_kg.audit.audit import Audit
from secure_kg.audit.scores.audit import ScoreAudit, audit_scores
from secure_kg.audit.scores.session import ScoredSession, open_session
from secure_kg.audit.view.findings import SEVERITIES
from secure_kg.audit.view.read import AuditedRun, open_run
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.progress import Progress
from secure_kg.report.audit_page import audit_page
from secure_kg.runs.key_files import DIRECTORY
from secure_kg.runs.run_folder import write_json, write_whole
from secure_kg.trained.auditing import LEAKS, AuditSettings, audit_run

_DESCRIPTION = """\
Read the transcript of a run's server, class everything it observed, check it, attack it, and report.

The audit works from the transcript and the run's public settings (config.toml). The run must have been started with
--transcript. What clients hold is used for nothing but to score attacks, and only with --truth; receipts of clients
(hashes of what they sent and received) are used to check the transcript."""

_EXAMPLE = """\
example:
  mpirun -n 6 python -m launch.fede --aggregation plain --alignment plain --transcript --out runs/plain
  mpirun -n 6 python -m launch.fede --transcript --out runs/secure
  python -m launch.audit runs/plain  --truth runs/plain/clients  --out audits/plain       exit code 3: high findings
  python -m launch.audit runs/secure --truth runs/secure/clients --out audits/secure      exit code 0: none

DIR gets audit.html, for people, and audit.json: findings (id, severity, title, evidence), checks, ledger, attacks.
Exit code 0: no finding of severity high. 3: at least one. 2: a mistake, told in one line."""




def main(argv: Sequence[str] | None = None) -> int:
    """0: no high finding. 3: at least one. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.audit"),
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        type=Path,
        help="run folder of a job that was started with --transcript, or folder of benchmarks.scores --record",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where audit.html and audit.json go")
    parser.add_argument(
        "--truth", type=Path, metavar="DIR", help="the clients' folders (RUN/clients): attacks are tried and scored"
    )
    parser.add_argument(
        "--receipts", type=Path, metavar="DIR", help="the clients' folders with their receipts [RUN/clients, if there]"
    )
    parser.add_argument("--keys", type=Path, metavar="FILE", help="the clients' identities, to verify signatures")
    parser.add_argument(
        "--colluder", type=int, default=1, metavar="K", help="the client that tells the attacker what it knows [1]"
    )
    parser.add_argument(
        "--leak",
        type=float,
        nargs="+",
        default=list(LEAKS),
        metavar="SHARE",
        help="how much of that it tells, one attack for each [0.3 0.5 1.0]",
    )
    parser.add_argument(
        "--membership",
        action="store_true",
        help="with --truth, of a FedE run: also try to tell which triples each client trains on",
    )
    parser.add_argument("--json", metavar="FILE", help="write audit.json to FILE as well; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if any(not 0 < share <= 1 for share in options.leak):
        raise UserError("--leak: shares lie above 0 and at most at 1")
    if (session := open_session(options.run)) is not None:
        return _run_scores(session, options)
    run = open_run(options.run)
    if options.membership:
        _check_membership(run, options)
    if run.clients < 1:
        raise UserError(f"{options.run}: its config.toml does not say how many clients there are")
    if not 1 <= options.colluder <= run.clients:
        raise UserError(f"--colluder {options.colluder}: the run has clients 1 to {run.clients}")
    for path in (options.truth, options.receipts):
        if path is not None and not path.is_dir():
            raise UserError(f"{path}: no such folder")
    _require_writable(options)
    receipts = options.receipts
    if receipts is None and (options.run / "clients").is_dir():
        receipts = options.run / "clients"
    settings = AuditSettings(
        truth=options.truth,
        receipts=receipts,
        identities=_identities(options.keys),
        colluder=options.colluder,
        leaks=options.leak,
        membership=options.membership,
    )
    note = (lambda _: None) if options.json == "-" else say
    with Progress("reading the transcript", _messages(run), "messages") as progress:
        found = audit_run(run, settings, progress, note)
    return _told(found.audit, run.path, found.page(), options)


def _messages(run: AuditedRun) -> int | None:
    """How many messages an audit goes through; None where the summary does not tell."""
    end = None if run.summary is None else run.summary.transcript
    if end is None or end.frames is None or len(run.recordings) != 1:
        return None
    return 2 * end.frames  # the server's program does it again first


def _run_scores(session: ScoredSession, options: argparse.Namespace) -> int:
    """Of a recorded session of score queries. It has no receipts and no models: its attack needs neither."""
    for option in ("truth", "receipts", "membership"):
        if getattr(options, option):
            raise UserError(f"--{option}: {options.run} holds score queries, whose audit has no use for it")
    _require_writable(options)
    with Progress("reading the transcript", unit="messages") as progress:
        told = audit_scores(session, _identities(options.keys), progress)
    return _told(told, session.path, audit_page(told.record()), options)


def _check_membership(run: AuditedRun, options: argparse.Namespace) -> None:
    from secure_kg.attacks.membership.recorded import check_run

    if options.truth is None:
        raise UserError("--membership needs --truth: without it there is nothing to score attacks by")
    check_run(run.config)


def _require_writable(options: argparse.Namespace) -> None:
    require_writable(options.out / "audit.json")
    require_json(options.json)


def _told(told: Audit | ScoreAudit, audited: Path, page: str, options: argparse.Namespace) -> int:
    """Write and show what was found; the exit code."""
    record = told.record().to_json()
    write_json(options.out / "audit.json", record)
    write_whole(options.out / "audit.html", page.encode())
    if options.json == "-":
        say(json.dumps(record, indent=2))
    else:
        _show(told, audited, options.out)
        if options.json:
            write_json(Path(options.json), record)
    return told.exit_code


def _identities(path: Path | None) -> Mapping[PartyId, bytes] | None:
    if path is None:
        return None
    path = path / DIRECTORY if path.is_dir() else path
    try:
        clients = parse_directory(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise UserError(f"--keys {path}: cannot be read") from None
    except IdentityError as problem:
        raise UserError(f"--keys {path}: {problem}") from None
    return {client.number: bytes.fromhex(client.public) for client in clients}




def _show(told: Audit | ScoreAudit, audited: Path, out: Path) -> None:
    rows = [[check.status, check.question, check.looked_at] for check in told.checks]
    table(f"Audit of {audited}", ("", "question", "looked at"), rows)
    _show_attacks(told.attacks)
    for finding in told.findings:
        say(f"{finding.severity:6}  {finding.title}")
        for line in finding.evidence[:2]:
            say(f"        {line}")
    counts = {severity: sum(one.severity == severity for one in told.findings) for severity in SEVERITIES}
    say("findings: " + ", ".join(f"{count} {severity}" for severity, count in counts.items()))
    say(f"report: {out / 'audit.html'}, {out / 'audit.json'}")


_SHOWN = ("AUC", "ERR", "TRR", "relations", "precision", "rows", "exact")
"""Scores that stand for an attack in the table; audit.json has all of them, for every client."""


def _show_attacks(attacks: Sequence[AttackResult]) -> None:
    """One line for each attack, the mean over the clients it was tried on."""
    by_id: dict[str, list[AttackResult]] = {}
    for one in attacks:
        by_id.setdefault(one.id, []).append(one)
    rows = []
    for name, results in by_id.items():
        keys = [key for key in _SHOWN if key in results[0].scores]
        told = (
            ", ".join(f"{key} {statistics.mean(getattr(one, of)[key] for one in results):.4f}" for key in keys)
            for of in ("scores", "chance")
        )
        rows.append([name, f"{sum(one.succeeded for one in results)} of {len(results)}", *told])
    if rows:
        table("Attacks", ("", "succeeded", "score, mean over clients", "by guessing"), rows)


if __name__ == "__main__":
    sys.exit(main())
