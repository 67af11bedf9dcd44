"""A federation between organisations, as its coordinator runs it: `secure-kg federation --help`.

federation.toml says who takes part, where the server is and under which settings. The coordinator signs it; every
change is a new version. Nobody becomes a member without a fingerprint that a person has compared.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from launch.between.comparing import all_matched, asked, is_terminal
from launch.between.showing import check_code, grouped_digits, member_table, roster_record, typed
from launch.command_line import OneLineParser, deliver, require_json, run_command
from launch.federation_settings import TRAINERS, preset_taken, settings_of
from protocols.session.site_keys import fingerprint
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.visible import shown
from secure_kg.foundation.words import counted
from secure_kg.provisioning.coordinator import DEFAULT_DAYS, Coordinator
from secure_kg.provisioning.fields import time_text
from secure_kg.provisioning.request import Request, read_request
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.site_folder import DEFAULT_COORDINATOR

_DESCRIPTION: Final = """\
Found and change a federation between organisations. The coordinator makes federation.toml from the sites' requests and
signs it: who takes part, where the server is, under which settings. It never has a private key of a site.

A request is a file that anybody could have exchanged on its way. What makes it safe is its fingerprint: call the site,
at a number that you did not get with the request, and let it read its fingerprint out to you."""

_EXAMPLES: Final = """\
examples, from the first command to a revoked member:
  python -m launch.federation new fede --name "Health Agency" --address fed.example.org:443 --dim 128 --rounds 50
  python -m launch.federation approve north.toml south.toml       shows fingerprints, asks whether they were compared
  python -m launch.federation approve north.toml --fingerprint "9c1d 4e7a 02bb 5f60 a1d8 77c3 e94f 3b12"
                                                                  as the site has read it out; for scripts, too
  python -m launch.federation show                                members, fingerprints, settings
  python -m launch.federation revoke "South Clinic"               a member that leaves, or whose identity was stolen
  python -m launch.federation revoke 2 --certificates-only        its TLS key was stolen, its identity was not
  python -m launch.federation renew --days 365                    before the federation expires

Every change is a new version of coordinator/federation.toml. Pass it on to the server and all sites, by any channel: it
is signed. A server that runs takes a newer file in the place of its own at the next connection."""
_NOTHING_SIGNED: Final = "nothing was signed"


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(argv))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    formatter: Any = argparse.RawDescriptionHelpFormatter
    parser = OneLineParser(
        prog=command("launch.federation"), description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=formatter,
        allow_abbrev=False,
    )  # fmt: skip
    uses = parser.add_subparsers(dest="use", required=True, metavar="new|approve|revoke|renew|show")

    def use(name: str, text: str, more: str) -> argparse.ArgumentParser:
        one: argparse.ArgumentParser = uses.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.\n\n{more}", formatter_class=formatter,
            allow_abbrev=False,
        )  # fmt: skip
        one.add_argument("--folder", type=Path, default=DEFAULT_COORDINATOR, metavar="DIR",
                         help=f"the coordinator's private files [{DEFAULT_COORDINATOR}]")  # fmt: skip
        one.add_argument("--json", metavar="FILE", help="write what was done to FILE; - for standard output")
        return one

    new = use("new", "an identity for the coordinator, and federation.toml without members", _NEW)
    new.usage = f"{new.prog} {'|'.join(TRAINERS)} --name NAME --address HOST:PORT [options] [training options]"
    new.add_argument("trainer", choices=TRAINERS, metavar="|".join(TRAINERS), help="the command that is to train")
    new.add_argument("--name", required=True, metavar="NAME", help="of the coordinator")
    new.add_argument("--address", required=True, metavar="HOST:PORT", help="where sites reach the server")
    new.add_argument("--server-request", type=Path, metavar="FILE",
                     help="request of the site that runs the server, if it is not the coordinator")  # fmt: skip
    new.add_argument("--fingerprint", metavar="TEXT", help="of that request, as the server's site has read it out")
    new.add_argument("--days", type=int, default=DEFAULT_DAYS, metavar="N", help=f"expires after N [{DEFAULT_DAYS}]")

    approve = use("approve", "make the sites of these requests members", _APPROVE)
    approve.add_argument("requests", type=Path, nargs="+", metavar="REQUEST", help="request.toml of a site")
    approve.add_argument("--fingerprint", action="append", default=[], metavar="TEXT",
                         help="as a site has read it out; one for each request, in any order")  # fmt: skip
    approve.add_argument("--in-place-of", metavar="MEMBER",
                         help="give a new site the number of this revoked member")  # fmt: skip

    revoke = use("revoke", "refuse a member, or all TLS certificates that it has up to now", _REVOKE)
    revoke.add_argument("member", metavar="MEMBER", help="its number or name")
    revoke.add_argument("--certificates-only", action="store_true", help="the member stays, with a fresh TLS key")
    revoke.add_argument("--yes", action="store_true", help="do not ask at the terminal")

    renew = use("renew", "a new version with a later expiry, or another address", _RENEW)
    renew.add_argument("--days", type=int, metavar="N", help="expires N days from now [as many as before]")
    renew.add_argument("--address", metavar="HOST:PORT", help="where sites reach the server from now on")

    use("show", "the newest version: members, fingerprints, server, settings", "Changes nothing.")
    return parser


_NEW: Final = """\
The training options are those of the command that trains (fedr, fede or fedcqa, which comes first): all options of
`secure-kg help fede` but those that concern one party alone. They are fixed for as long as the federation exists:
to change them, found a new one, in which sites take part with a new folder.

Without --dataset or --preset the preset is paper, of fedcqa usual; `secure-kg fede --client-data DIR` takes small, as
for umls, its usual data set. For runs that compare, say --preset in both."""
_APPROVE: Final = """\
A request of `site rotate` is approved in the same way: the site keeps its number and name under its new identity, and
the old one never becomes a member again."""
_REVOKE: Final = """\
A revoked member keeps its number, so a run goes on with it as a dropout. The server refuses it as soon as it has the
new version. --certificates-only is enough where a TLS key was copied without identity.key; whoever has copied the whole
folder can issue certificates by itself, so then revoke the member and approve a new identity."""
_RENEW: Final = """\
Sites and server refuse a version that has expired, so a site that gets no newer one does not go on for ever with
members that were revoked meanwhile."""


def _run(argv: Sequence[str] | None) -> int:
    options, more = make_parser().parse_known_args(argv)
    if more and options.use != "new":
        raise UserError(f"{more[0]}: not an option of {command('launch.federation')} {options.use}; see --help")
    require_json(options.json)
    if options.use == "new":
        return _new(options, more)
    coordinator = Coordinator.open(options.folder)
    uses = {"approve": _approve, "revoke": _revoke, "renew": _renew, "show": _show}
    return uses[options.use](coordinator, options)


def _new(options: argparse.Namespace, training: Sequence[str]) -> int:
    settings = settings_of(options.trainer, training)
    if STRATEGIES[settings.strategy].pools:
        raise UserError(f"--strategy {settings.strategy} pools all triples in one place; it is no federation")
    server = None
    if options.server_request is not None:
        server = read_request(options.server_request)
        _compare(
            [server], [] if options.fingerprint is None else [options.fingerprint], "shall this site run the server"
        )
    elif options.fingerprint is not None:
        raise UserError("--fingerprint is for --server-request: without it the coordinator's machine runs the server")
    made = Coordinator.new(options.folder, options.name, options.address, settings, days=options.days, server=server)

    def show(_: dict[str, Any]) -> None:
        own = "this machine" if server is None else f"the machine of {server.name}"
        say(f"coordinator {options.name}, with a fresh identity in {shown(options.folder)} (private: it stays here)")
        say(f"the server runs on {own}, and sites reach it at {made.roster.address}")
        say(f"settings of {options.trainer}: {_settings_line(made.roster)}")
        say(f"preset: {preset_taken(options.trainer, training)} (--preset NAME takes another one)")
        say(f"\nfingerprint of this coordinator, which every site compares once (read it out to them):\n\n"
            f"    {fingerprint(made.roster.coordinator)}\n")  # fmt: skip
        say(
            f"next: each site sends the file request.toml that {command('launch.site')} new has made;\n"
            f"then: {typed('launch.federation', options.folder, DEFAULT_COORDINATOR, 'approve REQUEST ...')}"
        )

    return _deliver(made, options, show)


def _approve(coordinator: Coordinator, options: argparse.Namespace) -> int:
    requests = [read_request(path) for path in options.requests]
    place = None if options.in_place_of is None else coordinator.member(options.in_place_of)
    members = coordinator.approve(requests, place)  # refuses what cannot be, before a person is asked to compare
    _compare(
        requests,
        options.fingerprint,
        "shall these sites be members" if len(requests) > 1 else "shall this site be a member",
    )
    made = coordinator.publish(members)
    return _deliver(made, options, lambda _: _changed(made, f"approved: {', '.join(one.name for one in requests)}"))


def _revoke(coordinator: Coordinator, options: argparse.Namespace) -> int:
    member = coordinator.member(options.member)
    members = coordinator.revoke(member, certificates_only=options.certificates_only)
    what = "the TLS certificates of member" if options.certificates_only else "member"
    if not options.yes and not (is_terminal() and asked(f"Revoke {what} {member.number} ({member.name})?")):
        hint = "" if is_terminal() else "; where nobody can be asked, say --yes"
        raise UserError(f"member {member.number} ({member.name}) was not revoked: {_NOTHING_SIGNED}{hint}")
    made = coordinator.publish(members)
    return _deliver(made, options, lambda _: _changed(made, f"revoked: {what} {member.number} ({member.name})"))


def _renew(coordinator: Coordinator, options: argparse.Namespace) -> int:
    made = coordinator.publish(coordinator.roster.members, address=options.address, days=options.days)
    told = f"expires {time_text(made.roster.expires)}, address {made.roster.address}"
    return _deliver(made, options, lambda _: _changed(made, f"renewed: {told}"))


def _show(coordinator: Coordinator, options: argparse.Namespace) -> int:
    return _deliver(coordinator, options, lambda _: _shown(coordinator))


def _compare(requests: Sequence[Request], given: Sequence[str], become: str) -> None:
    """A person says that the fingerprints are the sites' own. `UserError` where nobody has."""
    if given:
        all_matched([(one.name, one.identity) for one in requests], given)
        return
    names = ", ".join(one.name for one in requests)
    if not is_terminal():
        raise UserError(f"--fingerprint is missing: give what {names} read out to you; {_NOTHING_SIGNED}")
    rows: list[list[str | int]] = []
    for one in requests:
        kind = "" if one.previous is None else "a new identity in place of its old one"
        rows += [[one.name, kind], [one.fingerprint, f"made {time_text(one.made)}"]]
    table("", ("request, and its fingerprint", ""), rows)
    say("Let each site read its fingerprint out to you, over a channel that did not carry the request. A name in a "
        "request proves nothing.")  # fmt: skip
    count = "it" if len(requests) == 1 else f"all {len(requests)}"
    if not asked(f"Have you compared {count} in this way, and {become}?"):
        raise UserError(f"not confirmed: {_NOTHING_SIGNED}")


def _deliver(coordinator: Coordinator, options: argparse.Namespace, show: Any) -> int:
    record = {"file": str(coordinator.path), **roster_record(coordinator.roster)}
    deliver(record, options.json, show)
    return 0


def _changed(coordinator: Coordinator, told: str) -> None:
    roster = coordinator.roster
    standing = sum(not one.revoked for one in roster.members)
    say(told)
    say(f"version {roster.version} with {counted(standing, 'member')}: {shown(coordinator.path)}")
    say(f"settings: {_digest(roster)}")
    if problem := standing_problem(roster):
        say(f"note: {problem}")
    check = f"{command('launch.site')} check federation.toml"
    say(f"next: pass this file on to the server and all sites; each runs: {check}")


def standing_problem(roster: Roster) -> str:
    """Why no sum of so many members can be justified under the settings; empty if it can."""
    count = len(roster.members)
    if count < 2:
        return "at least two members are needed before training can begin"
    try:
        roster.settings.sum_parameters(count, count)
    except UserError as problem:
        return f"with {counted(count, 'member')} the settings do not stand: {problem}"
    return ""


def _shown(coordinator: Coordinator) -> None:
    roster = coordinator.roster
    where = "the coordinator's machine" if roster.server == roster.coordinator else fingerprint(roster.server)
    say(f"federation of {coordinator.site.name}, version {roster.version} of {time_text(roster.made)}")
    say(f"expires      {time_text(roster.expires)}")
    say(f"file         {shown(coordinator.path)}")
    say(f"check code   {check_code(roster)} (the same at every site)")
    say(f"coordinator  {fingerprint(roster.coordinator)}")
    say(f"server       {roster.address}, {where}")
    say(f"settings     {_settings_line(roster)}")
    if roster.members:
        member_table(roster.members)
    if problem := standing_problem(roster):
        say(f"note: {problem}")


def _settings_line(roster: Roster) -> str:
    settings = roster.settings
    return (
        f"{settings.strategy}, {settings.model}, dimension {settings.dim}, at most {settings.rounds} rounds, "
        f"{settings.aggregation} sums, {settings.adversary} server; {_digest(roster)}"
    )


def _digest(roster: Roster) -> str:
    """Of the settings, to which the number of members belongs."""
    count = len(roster.members)
    whose = f"for {counted(count, 'member')}, revoked ones among them" if count else "without members"
    return f"digest {grouped_digits(roster.settings.digest(), 2)} {whose}; another number has another one"


if __name__ == "__main__":
    sys.exit(main())
