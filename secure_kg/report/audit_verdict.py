"""The head of an audit's page: one sentence, and the figures beside it."""

from secure_kg.audit.records.report import Reported
from secure_kg.foundation.words import counted
from secure_kg.report.html import Html, cards, megabytes, tag


def verdict(report: Reported) -> tuple[str, str]:
    """The sentence, and how it is to be taken: good, fair or bad."""
    high = [finding for finding in report.findings if finding.severity == "high"]
    medium = sum(finding.severity == "medium" for finding in report.findings)
    won = attacks_won(report)
    if high:
        read = any(finding.id.startswith("clear-") for finding in high)
        why = ": the server read clients' data in clear." if read else f". {high[0].title}."
        return f"{counted(len(high), 'finding')} of severity high{why}" + _attacks(won), "bad"
    if not report.traffic.messages:
        return "The transcript holds no message, so nothing can be said about what the server observed.", "fair"
    if won:
        return f"No finding of severity high, but an attack did better than chance.{_attacks(won)}", "bad"
    if medium:
        rest = f"{counted(medium, 'finding')} of severity medium should be read."
        return f"The server read no client's data in clear, and no message was undeclared; {rest}", "fair"
    return "The server observed nothing beyond what the protocols declare.", "good"


def attacks_won(report: Reported) -> int:
    return sum(bool(attack.succeeded) for attack in report.attacks)


def verdict_box(report: Reported) -> Html:
    sentence, style = verdict(report)
    return tag("p", sentence, class_=f"verdict {style}")


def verdict_cards(report: Reported) -> Html:
    traffic, tried = report.traffic, len(report.attacks)
    severities = [finding.severity for finding in report.findings]
    counts = [(*_card(severities.count(name), "finding"), name) for name in ("high", "medium", "low", "info")]
    attacks = (f"{attacks_won(report)} of {tried}", "attacks succeeded") if tried else ("none", "attacks tried")
    return cards(
        [
            _card(traffic.messages, "message"),
            (megabytes(traffic.bytes_up), "received by the server"),
            _card(rounds(report), "round"),
            _card(report.settings.clients, "client"),
            *((number, f"{noun}, {name}") for number, noun, name in counts),
            attacks,
        ]
    )


def _card(number: int, noun: str) -> tuple[str, str]:
    """A figure, and what it counts."""
    figure, _, counts = counted(number, noun).partition(" ")
    return figure, counts


def rounds(report: Reported) -> int:
    """Rounds in which rows were summed; of a run that shares none, those in which anything was sent."""
    summed = {one.round for one in report.sums if one.purpose == "rows"}
    return len(summed or {number for number in report.traffic.bytes_by_round if number != "0"})


def _attacks(won: int) -> str:
    return f" {counted(won, 'attack')} succeeded." if won else ""
