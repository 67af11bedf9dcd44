"""Members of a federation as people see them, and as JSON. A fingerprint has a line of its own: it is never broken."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from launch.checkup.finding import STATUSES, Finding
from protocols.session.site_keys import fingerprint
from secure_kg.foundation.console import table
from secure_kg.foundation.invocation import command
from secure_kg.provisioning.fields import time_text
from secure_kg.provisioning.roster import Member, Roster


def member_record(member: Member) -> dict[str, Any]:
    """A member in JSON."""
    return {
        "number": member.number,
        "name": member.name,
        "fingerprint": member.fingerprint,
        "revoked": member.revoked,
        "certificates_from": None if member.issued_from is None else time_text(member.issued_from),
    }


def roster_record(roster: Roster) -> dict[str, Any]:
    """A federation in JSON."""
    return {
        "version": roster.version,
        "made": time_text(roster.made),
        "expires": time_text(roster.expires),
        "address": roster.address,
        "coordinator": fingerprint(roster.coordinator),
        "server": fingerprint(roster.server),
        "settings_digest": roster.settings.digest().hex(),
        "text_digest": roster.file_digest.hex(),
        "members": [member_record(member) for member in roster.members],
    }


def typed(name: str, folder: Path, usual: Path, rest: str) -> str:
    """A command to type next, with the folder if it is not the usual one."""
    where = "" if folder == usual else f" --folder {shlex.quote(str(folder))}"
    return f"{command(name)} {rest}{where}"


def check_code(roster: Roster) -> str:
    """What people compare to know that they have the same text. As long as a fingerprint: whoever signs the texts could
    find two that have a shorter one in common."""
    return grouped_digits(roster.file_digest, 8)


def grouped_digits(content: bytes, groups: int) -> str:
    """The first digits of a digest in groups of four."""
    digits = content.hex()
    return " ".join(digits[4 * group : 4 * group + 4] for group in range(groups))


def member_table(members: Sequence[Member]) -> None:
    """Number, name and state of each, and its fingerprint in the line below."""
    rows: list[Sequence[str | int]] = []
    for member in members:
        rows.append([str(member.number), member.name, _state(member)])
        rows.append(["", member.fingerprint, ""])
    table("", ("", "member, and its fingerprint", "state"), rows)


def finding_rows(findings: Iterable[Finding]) -> tuple[list[list[str | int]], dict[str, int]]:
    """Rows of a table of findings, and how many there are of each status."""
    rows: list[list[str | int]] = []
    counts = dict.fromkeys(map(str, STATUSES), 0)
    for one in findings:
        counts[one.status] += 1
        rows.append([one.status, one.about, one.found])
        if one.next_step:
            rows.append(["", "", f"→ {one.next_step}"])
    return rows, counts


def _state(member: Member) -> str:
    if member.revoked:
        return "revoked"
    if member.issued_from is not None:
        return f"certificates from {time_text(member.issued_from)} on"
    return "member"
