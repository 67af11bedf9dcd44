"""Report section on participation: who took part in which sum, with rounds that look alike in one line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from secure_kg.audit.records.parts import SumLine
from secure_kg.foundation.words import counted
from secure_kg.report.html import Html, details, quiet, table, tag

MOST_LINES: Final = 60
MOST_COLUMNS: Final = 40


@dataclass(slots=True)
class Line:
    """Sums of one purpose in successive rounds, over the same clients."""

    purpose: str
    rounds: list[int]
    contributors: tuple[int, ...]
    read: bool
    problems: list[str]

    @property
    def name(self) -> str:
        first, last = self.rounds[0], self.rounds[-1]
        when = ("set-up" if first == 0 else f"round {first}") if first == last else f"rounds {first}–{last}"
        return f"{self.purpose}, {when}"


def lines(sums: Iterable[SumLine]) -> list[Line]:
    """Sums of the same purpose follow each other."""
    by_purpose: dict[str, list[Line]] = {}
    for one in sums:
        contributors, read = tuple(sorted(one.contributors)), one.read_by_server
        so_far = by_purpose.setdefault(one.purpose, [])
        if so_far and (so_far[-1].contributors, so_far[-1].read) == (contributors, read):
            line = so_far[-1]
            line.rounds.append(one.round)
        else:
            line = Line(one.purpose, [one.round], contributors, read, [])
            so_far.append(line)
        if one.problem:
            line.problems.append(f"round {one.round}: {one.problem}")
    return [line for several in by_purpose.values() for line in several]


def sums_section(sums: Sequence[SumLine], clients: int) -> list[Html]:
    if not sums:
        return [quiet("No sum was made.")]
    everybody = sorted({*range(1, clients + 1), *(party for one in sums for party in one.contributors)})
    read = sum(one.read_by_server for one in sums)
    told = f"{counted(len(sums), 'sum')}, of which the server could read {read}."
    if len(everybody) > MOST_COLUMNS:
        return [tag("p", told), _counts(sums, everybody)]
    found = lines(sums)
    head = ("sum of", *map(str, everybody), "readable")
    body = [[line.name, *(_cell(party in line.contributors) for party in everybody), _read(line)] for line in found]
    shown = table(
        head,
        body[:MOST_LINES],
        "matrix",
        "A filled square: the client is in the sum. Readable: by the server.",
    )
    rest = [details(f"{len(body) - MOST_LINES} more", table(head, body[MOST_LINES:], "matrix"))]
    return [tag("p", told), shown, *(rest if len(body) > MOST_LINES else []), _counts(sums, everybody)]


def _cell(inside: bool) -> Html:
    return tag("span", class_="in" if inside else "out", role="img", aria_label="yes" if inside else "no")


def _read(line: Line) -> str:
    return "; ".join(line.problems) if line.problems else "yes" if line.read else "no"


def _counts(sums: Sequence[SumLine], everybody: Sequence[int]) -> Html:
    purposes = list(dict.fromkeys(one.purpose for one in sums))
    body = [
        [
            f"client {party}",
            *(str(sum(one.purpose == name and party in one.contributors for one in sums)) for name in purposes),
        ]
        for party in everybody
    ]
    return details("In how many sums each client is", table(("", *purposes), body))
