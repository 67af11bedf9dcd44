"""A check before a site joins: everything that would end or delay it later, each with what to do about it."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from launch.between.reaching import Reached, listening, reach
from launch.between.showing import check_code, grouped_digits
from launch.checkup.finding import Finding, graded
from launch.checkup.machine import disk, python
from launch.checkup.packages import packages
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.site_keys import BACKDATED
from secure_kg import __version__
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.words import counted, seconds_text
from secure_kg.provisioning.fields import time_text
from secure_kg.provisioning.private_files import check_folder, check_private
from secure_kg.provisioning.record import own_number, read_record
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.site_folder import REQUEST, ROSTER
from secure_kg.provisioning.tls import client_tls
from secure_kg.runs.run_folder import DRAFT

_SOON: Final = timedelta(days=30)
_APART: Final = timedelta(minutes=2)
_PUBLIC: Final = (REQUEST, ROSTER)


def preflight(roster: Roster, folder: Path, data: Path | None, columns: str = "") -> Iterator[Finding]:
    """All checks. `data`: this site's triples, read as training reads them; None: they are not looked at."""
    yield _files(folder)
    yield _version(roster)
    yield Finding("check code", "ok", check_code(roster))
    number, membership = _membership(roster, folder)
    yield membership
    if number is not None and number != SERVER:
        yield _compared(roster, number, folder)
    yield _settings(roster)
    yield _software(roster)
    yield python()
    yield _packages()
    yield disk()
    if number == SERVER:
        yield from listening(roster)
        yield _clock(roster, Reached(()))
    elif number is not None:
        reached = reach(roster, lambda: client_tls(roster, folder))
        yield from reached.findings
        yield _clock(roster, reached)
    if data is not None:
        yield _data(roster, number or 1, data, columns)


def _files(folder: Path) -> Finding:
    try:
        check_folder(folder)
        keys = folder / "keys"
        inside = sorted(keys.iterdir()) if keys.is_dir() and not keys.is_symlink() else []
        for path in (*sorted(folder.iterdir()), *inside):
            if path.is_dir() and not path.is_symlink():
                check_folder(path)
            elif path.name not in _PUBLIC and not _is_public_draft(path.name):
                check_private(path)
    except UserError as problem:
        return Finding("private files", "problem", str(problem), "mend it, and ask yourself who has read it meanwhile")
    return Finding("private files", "ok", "nobody but this user can read or change them")


def _is_public_draft(name: str) -> bool:
    """What a command that was killed leaves of a public file."""
    return name.endswith(DRAFT) and any(name.startswith(f"{public}.") for public in _PUBLIC)


def _version(roster: Roster) -> Finding:
    left = roster.expires - datetime.now(UTC)
    return graded(
        "federation",
        f"version {roster.version}, expires {time_text(roster.expires)}",
        note=left < _SOON,
        next_step=f"it expires in {counted(max(0, left.days), 'day')}; ask the coordinator for a newer version",
    )


def _membership(roster: Roster, folder: Path) -> tuple[PartyId | None, Finding]:
    try:
        number = own_number(roster, folder)
    except UserError as problem:
        step = f"pass {folder / REQUEST} on to the coordinator, and read its fingerprint out to it"
        return None, Finding("membership", "problem", str(problem), step)
    standing = sum(not one.revoked for one in roster.members)
    if number == SERVER:
        return number, Finding("membership", "ok", f"this is the server, of {counted(standing, 'member')}")
    name = roster.members[number - 1].name
    return number, Finding("membership", "ok", f"number {number} of {counted(standing, 'member')}, as {name}")


def _compared(roster: Roster, number: PartyId, folder: Path) -> Finding:
    """Needed against an active server alone, which might be the coordinator."""
    record = read_record(folder)
    compared = record.compared if record is not None else frozenset()
    missing = [one.name for one in roster.members
               if one.number != number and not one.revoked and one.identity not in compared]  # fmt: skip
    active = roster.settings.adversary == "active"
    if not missing:
        return Finding("members", "ok", "their fingerprints were compared")
    return graded(
        "members",
        f"not compared here: {', '.join(missing[:4])}{' ...' if len(missing) > 4 else ''}"
        + ("" if active else " (only an active server would make that necessary)"),
        problem=active,
        next_step=f"compare each fingerprint with that member over another channel, then {command('launch.site')} "
        "check FILE --members-compared",
    )


def _settings(roster: Roster) -> Finding:
    settings, count = roster.settings, len(roster.members)
    told = f"{settings.strategy}, {settings.aggregation} sums, {settings.adversary} server; digest " \
        f"{grouped_digits(settings.digest(), 2)}"  # fmt: skip
    if count < 2:
        return Finding("settings", "note", told, "at least two members are needed before training can begin")
    try:
        settings.sum_parameters(count, count)
    except UserError as problem:
        return Finding("settings", "problem", f"{told}; {problem}", "tell the coordinator")
    return Finding("settings", "ok", told)


def _software(roster: Roster) -> Finding:
    return graded(
        "software",
        f"secure-kg {__version__} here, {roster.software} at the coordinator",
        note=roster.software != __version__,
        next_step="all parties should run the same version; the settings were read alike, which is the least",
    )


def _packages() -> Finding:
    found = next(iter(packages()))
    return found if found.status != "ok" else dataclasses.replace(found, found="all that training needs")


def _clock(roster: Roster, reached: Reached) -> Finding:
    """Certificates are dated. One that is dated ahead of the server's clock by more than they allow is refused."""
    now, step = datetime.now(UTC), "set the clock (timedatectl set-ntp true)"
    if reached.date is None:
        behind = roster.made - now
        told = f"{time_text(now)}; not compared with the server's"
        return graded("clock", told, problem=behind > BACKDATED, note=behind > _APART,
                      next_step=f"federation.toml was made in the future; {step}")  # fmt: skip
    apart = abs(now - reached.date)
    return graded(
        "clock",
        f"{seconds_text(apart.total_seconds())} apart from the server's",
        problem=apart > BACKDATED,
        note=apart > _APART,
        next_step=f"{step}, here or at the server",
    )


def _data(roster: Roster, number: int, data: Path, columns: str) -> Finding:
    """Read as training reads them. Figures stay on this console."""
    from secure_kg.data.client_data import load_graph  # numpy and readers, which other checks do not need

    settings = dataclasses.replace(roster.settings, client_data=str(data), columns=columns)
    try:
        graph = load_graph(settings, max(number, len(roster.members)), number)
    except UserError as problem:
        return Finding("data", "problem", str(problem), "docs/data.md says which files can be read, and how")
    parts = ", ".join(f"{len(graph.part(part)):,} {part}" for part in ("train", "valid", "test"))
    return Finding("data", "ok", f"{len(graph.entities):,} entities, {len(graph.relations):,} relations; {parts}")
