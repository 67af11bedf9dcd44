"""The ledger of an audit: every field that passed the server, by class, and how many bytes there were."""

from collections.abc import Sequence
from typing import Final

from secure_kg.audit.records.parts import LedgerLine, Traffic
from secure_kg.foundation.words import counted
from secure_kg.report.charts import column_chart, legend, share_bar
from secure_kg.report.html import Html, chip, details, figure, join, megabytes, quiet, stacked_table, tag
from secure_kg.report.rounds import by_round

CLASSES: Final = {
    "clear": "a single client's own data",
    "aggregate": "a sum, a mean or a size over several clients",
    "masked": "random to whoever lacks the masks, or a share that opens nothing by itself",
    "ciphertext": "encrypted for a client; the server carries it",
    "public": "settings, public keys, signatures, who is there: no client's data",
}
"""What stands in them; the ones a reader should look at first come first."""
_OPENED: Final = frozenset({"clear", "aggregate"})


def ledger_section(ledger: Sequence[LedgerLine]) -> list[Html]:
    if not ledger:
        return [quiet("No message passed.")]
    undeclared = sum(not entry.declared for entry in ledger)
    told = "1 entry stands" if undeclared == 1 else f"{undeclared:,} entries stand"
    summed = (
        "Every field of every message was declared."
        if not undeclared
        else f"Of {len(ledger):,}, {told} for something that the settings of this run do not declare."
    )
    groups = (_group(name, [entry for entry in ledger if entry.field_class == name]) for name in names_of(ledger))
    return [tag("p", summed), received_by_class(ledger), tag("div", *groups, class_="ledger")]


def names_of(ledger: Sequence[LedgerLine]) -> list[str]:
    """The classes that occur, known ones in their order, others after them."""
    found = dict.fromkeys(entry.field_class for entry in ledger)
    return [*(name for name in CLASSES if name in found), *(name for name in found if name not in CLASSES)]


def received_by_class(ledger: Sequence[LedgerLine]) -> Html:
    sizes = {
        name: sum(entry.bytes for entry in ledger if entry.field_class == name and entry.direction == "received")
        for name in names_of(ledger)
    }
    total = sum(sizes.values()) or 1
    parts = legend([(f"{name}: {megabytes(size)} ({size / total:.1%})", name) for name, size in sizes.items()])
    return figure(
        join((share_bar(list(sizes.items())), parts)), "what the server received, by class: bytes inside messages"
    )


def _group(name: str, entries: Sequence[LedgerLine]) -> Html:
    size = sum(entry.bytes for entry in entries)
    title = join((chip(name, f"class of-{name}"), f" {counted(len(entries), 'field')}, {megabytes(size)}"))
    head = ("message.field", "direction", "sum of", "rounds", "messages", "bytes", "meaning", "declared")
    body = [_line(entry) for entry in sorted(entries, key=lambda entry: (entry.declared, -entry.bytes))]
    return details(title, stacked_table(head, body, CLASSES.get(name, "")), opened=name in _OPENED)


def _line(entry: LedgerLine) -> list[str]:
    return [
        join((tag("b", entry.message), *((".", tag("wbr"), entry.field) if entry.field else ()))),
        entry.direction,
        entry.purpose,
        _rounds(entry),
        f"{entry.messages:,}",
        f"{entry.bytes:,}",
        entry.meaning,
        chip("yes", "yes") if entry.declared else chip("no", "no"),
    ]


def _rounds(entry: LedgerLine) -> str:
    """0 is the set-up."""
    first, last = entry.first_round, entry.last_round
    start = "set-up" if first == 0 else str(first)
    return start if first == last else f"{start} to {last}"


def traffic_section(traffic: Traffic) -> list[Html]:
    columns, width = by_round(traffic.bytes_by_round)
    chart = column_chart(columns, ("received by the server", "sent by the server"), "MB", "round")
    several = f"; {width} rounds in each column" if width > 1 else ""
    caption = f"megabytes by round, headers included; 0 is the set-up, the round after the last one the test{several}"
    kinds = sorted(traffic.bytes_by_kind.items(), key=lambda one: -one[1].up - one[1].down)
    body = [[kind, megabytes(sizes.up), megabytes(sizes.down)] for kind, sizes in kinds]
    by_kind = stacked_table(("message", "received", "sent"), body, "bytes by kind of message")
    return [figure(chart, caption, "narrow"), *([details("By kind of message", by_kind)] if body else [])]
