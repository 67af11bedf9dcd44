"""One organisation's part in a federation, before it joins: `secure-kg site --help`.

The identity and the TLS key are made here and never leave. What leaves is the request. Threat model: whoever carries
files can exchange them, so the coordinator's fingerprint is compared once by a person, and pinned from then on.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from launch.between.comparing import asked, is_terminal, require_matching
from launch.between.showing import finding_rows, grouped_digits, member_table, roster_record, typed
from launch.checkup.finding import Finding
from launch.command_line import OneLineParser, deliver, require_json, run_command
from protocols.session.site_keys import fingerprint
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.visible import shown
from secure_kg.foundation.words import counted
from secure_kg.provisioning.record import accepted_roster, note_roster, read_record
from secure_kg.provisioning.request import request_text
from secure_kg.provisioning.roster import Roster, load_roster, signer_of
from secure_kg.provisioning.site_folder import DEFAULT_SITE, REQUEST, SiteFolder
from secure_kg.runs.run_folder import write_whole

_DESCRIPTION: Final = """\
One organisation's part in a federation, before it joins. Its identity and its TLS key are made here, in a folder that
nobody else may enter, and never leave it. What leaves is a request, which holds nothing private."""

_EXAMPLES: Final = """\
examples, in their order:
  python -m launch.site new --name "North Hospital"               makes site/; pass site/request.toml on, and read its
                                                                  fingerprint out to the coordinator over the telephone
  python -m launch.site check federation.toml                     asks whether the coordinator's fingerprint is right
  python -m launch.site check federation.toml --fingerprint "9c1d 4e7a 02bb 5f60 a1d8 77c3 e94f 3b12" --data graph.nt
                                                                  the same for scripts; reads the data as training would
  python -m launch.site check federation.toml --members-compared
                                                                  against an active server: all members were compared
  python -m launch.site show                                      who this site is, and what it has accepted
  python -m launch.site renew                                     a fresh TLS key
  python -m launch.site rotate                                    a new identity, signed by the old one

Back up the folder as you would a passport: whoever has a copy of it is this site until it is revoked."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 1: the check has found a problem. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    formatter: Any = argparse.RawDescriptionHelpFormatter
    parser = OneLineParser(
        prog=command("launch.site"), description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=formatter,
        allow_abbrev=False,
    )  # fmt: skip
    uses = parser.add_subparsers(dest="use", required=True, metavar="new|show|check|renew|rotate")

    def use(name: str, text: str, more: str) -> argparse.ArgumentParser:
        one: argparse.ArgumentParser = uses.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.\n\n{more}", formatter_class=formatter,
            allow_abbrev=False,
        )  # fmt: skip
        one.add_argument("--folder", type=Path, default=DEFAULT_SITE, metavar="DIR",
                         help=f"the site's private files [{DEFAULT_SITE}]")  # fmt: skip
        one.add_argument("--json", metavar="FILE", help="write what is told to FILE as well; - for standard output")
        return one

    new = use("new", "make this site's identity, TLS key and request", _NEW)
    new.add_argument("--name", required=True, metavar="NAME", help="as the other members know this organisation")
    use("show", "who this site is, and what it has accepted", "Changes nothing.")
    check = use("check", "accept a coordinator once, and check everything that joining needs", _CHECK)
    check.add_argument("federation", type=Path, metavar="FEDERATION",
                       help="federation.toml, as the coordinator passed it on")  # fmt: skip
    check.add_argument("--fingerprint", metavar="TEXT", help="the coordinator's, as it has read it out to you")
    check.add_argument("--members-compared", action="store_true",
                       help="you have compared the fingerprints of all members with them")  # fmt: skip
    check.add_argument("--data", type=Path, metavar="FILE", help="this site's triples: a file, or a folder with parts")
    check.add_argument("--columns", metavar="TEXT", default="", help="of a table: head,relation,tail (docs/data.md)")
    use("renew", "a fresh TLS key and certificate", _RENEW)
    use("rotate", "a request for a new identity, signed by the old one and the new one", _ROTATE)
    return parser


_NEW: Final = """\
The machine of the server gets a folder of its own in the same way, if the coordinator is elsewhere."""
_CHECK: Final = """\
The first time, a person compares the coordinator's fingerprint over another channel; from then on only newer versions
of the same federation are accepted. Then, in one table: private files, version and expiry, membership, settings,
software, disk, the way to the server (through the proxy of the environment, if there is one), clock and data.

Exit code 0: joining would work. 1: a problem, with what to do about it. 2: a mistake, told in one line."""
_RENEW: Final = """\
They are made anew by themselves a month before they expire. If the old key may be in other hands, the coordinator
revokes it afterwards (federation revoke NAME --certificates-only)."""
_ROTATE: Final = """\
The old identity stays in use until federation.toml has the new one. The coordinator compares the new fingerprint as it
did the first one. A rotation does not help if the old identity was stolen: whoever has it can ask for one, too. Then
have it revoked, and begin with a new folder."""


def _run(options: argparse.Namespace) -> int:
    require_json(options.json)
    uses = {"new": _new, "show": _show, "check": _check, "renew": _renew, "rotate": _rotate}
    return uses[options.use](options)


def _new(options: argparse.Namespace) -> int:
    site = SiteFolder.new(options.folder, options.name)
    site.renew_leaf("client")
    _write_request(site, request_text(site.name, site.identity_pem, _now()))
    return _told_of_request(site, fingerprint(site.identity), options)


def _rotate(options: argparse.Namespace) -> int:
    site = SiteFolder.open(options.folder)
    following = site.next_identity()
    _write_request(site, request_text(site.name, following, _now(), site.identity_pem))
    upcoming = site.upcoming()
    return _told_of_request(site, fingerprint(upcoming or b""), options)


def _write_request(site: SiteFolder, text: str) -> None:
    write_whole(site.path / REQUEST, text.encode())


def _told_of_request(site: SiteFolder, mark: str, options: argparse.Namespace) -> int:
    request = site.path / REQUEST

    def show(_: dict[str, Any]) -> None:
        if options.use == "new":
            say(f"site {site.name}: identity and TLS key are in {shown(site.path)}, which is private and stays here")
        else:
            say(f"site {site.name}: a new identity is ready in {shown(site.path)}; the old one holds until "
                "federation.toml has the new one")  # fmt: skip
        say(f"\nfingerprint of the new identity, to be read out to the coordinator:\n\n    {mark}\n")
        say(f"1. pass this file on to the coordinator, by any channel (nothing in it is private): {shown(request)}")
        say("2. read the fingerprint out over another channel, such as the telephone")
        say(f"3. when federation.toml comes back: {_next('check federation.toml', site)}")

    deliver({"name": site.name, "folder": str(site.path), "request": str(request), "fingerprint": mark},
            options.json, show)  # fmt: skip
    return 0


def _renew(options: argparse.Namespace) -> int:
    site = SiteFolder.open(options.folder)
    made = [site.renew_leaf("client")]
    if (site.path / "tls-server.pem").exists():
        made.append(site.renew_leaf("server"))

    def show(_: dict[str, Any]) -> None:
        say(f"fresh TLS key and certificate: {', '.join(shown(path) for path in made)}")
        say("if the old key may be in other hands, ask the coordinator to refuse it: "
            f"{command('launch.federation')} revoke NAME --certificates-only")  # fmt: skip

    deliver({"files": [str(path) for path in made]}, options.json, show)
    return 0


def _show(options: argparse.Namespace) -> int:
    site = SiteFolder.open(options.folder)
    record, upcoming = read_record(site.path), site.upcoming()
    told = {
        "name": site.name,
        "folder": str(site.path),
        "fingerprint": fingerprint(site.identity),
        "next_fingerprint": None if upcoming is None else fingerprint(upcoming),
        "coordinator": None if record is None else fingerprint(record.coordinator),
        "version": None if record is None else record.version,
        "text_digest": None if record is None else record.file_digest.hex(),
        "members_compared": 0 if record is None else len(record.compared),
    }

    def show(_: dict[str, Any]) -> None:
        say(f"site         {site.name}")
        say(f"folder       {shown(site.path)} (private)")
        say(f"fingerprint  {told['fingerprint']}")
        if upcoming is not None:
            say(f"rotation     {told['next_fingerprint']} as soon as federation.toml has it")
        if record is None:
            say(f"coordinator  none accepted yet: {_next('check federation.toml', site)}")
            return
        say(f"coordinator  {told['coordinator']}")
        say(f"federation   version {record.version}")
        say(f"check code   {grouped_digits(record.file_digest, 8)}")
        say(f"compared     fingerprints of {counted(len(record.compared), 'member')}")

    deliver(told, options.json, show)
    return 0


# --- check ------------------------------------------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> int:
    site = SiteFolder.open(options.folder)
    roster = _accepted(site, options)
    if options.members_compared:
        _note_compared(site, roster)
    from launch.between.preflight import preflight

    found = list(preflight(roster, site.path, options.data, options.columns))
    rows, counts = finding_rows(found)
    record = {
        "ok": not counts["problem"],
        "counts": counts,
        "federation": roster_record(roster),
        "findings": [one.to_json() for one in found],
    }
    deliver(record, options.json, lambda _: _show_check(rows, counts, found))
    return 1 if counts["problem"] else 0


def _accepted(site: SiteFolder, options: argparse.Namespace) -> Roster:
    """The roster, by the coordinator that a person has compared: now, or when the first version was checked."""
    path: Path = options.federation
    record, given = read_record(site.path), options.fingerprint
    if record is not None:
        if given is not None:
            require_matching(given, record.coordinator, "the coordinator that this site has accepted")
        return accepted_roster(path, site.path)
    signer = signer_of(path)
    if given is not None:
        require_matching(given, signer, f"whoever has signed {shown(path)}")
    elif not is_terminal():
        raise UserError(f"{shown(path)}: --fingerprint is missing: compare the coordinator's over another channel, and "
                        "give it here once")  # fmt: skip
    else:
        say(f"{shown(path)} was signed by the identity with this fingerprint:\n\n    {fingerprint(signer)}\n")
        say("Call the coordinator, at a number that did not come with the file, and let it read its fingerprint out.")
        if not asked("Is it the same, in all eight groups?"):
            raise UserError(f"{shown(path)}: its coordinator was not accepted, and nothing was changed")
    roster = load_roster(path, fingerprint(signer))
    note_roster(site.path, roster)
    return roster


def _note_compared(site: SiteFolder, roster: Roster) -> None:
    """What a person says to have compared is shown, for the file may be another one than it was then."""
    if is_terminal():
        member_table([one for one in roster.members if not one.revoked])
        if not asked("Have you compared each of these with that member, over another channel?"):
            raise UserError("--members-compared: not confirmed, and nothing was noted")
    note_roster(site.path, roster, compared=True)


def _show_check(rows: list[list[str | int]], counts: dict[str, int], found: Sequence[Finding]) -> None:
    table("", ("", "about", "found, and → what to do"), rows)
    told = f"{counted(counts['problem'], 'problem')}, {counted(counts['note'], 'note')}"
    by_name = {one.about for one in found}
    data = "" if "data" in by_name or "port" in by_name else "; with --data PATH your triples are checked, too"
    say(f"{told}; {'joining would not work before the problems are mended' if counts['problem'] else 'ready'}{data}")


def _next(rest: str, site: SiteFolder) -> str:
    return typed("launch.site", site.path, DEFAULT_SITE, rest)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    sys.exit(main())
