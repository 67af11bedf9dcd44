"""A measurement as tables for people."""

from typing import Any

from benchmarks.scoring.peers import ARGMAX, COMPARISON, UNPACKED
from secure_kg.foundation.console import say, table


def show(report: dict[str, Any]) -> None:
    """Print everything that `--json` has, but for single repetitions."""
    title = (
        f"{report['entities']:,} entities, {report['clients']} clients, batches of {report['queries']}, top "
        f"{report['top']}; per query, medians of {report['repeat']}"
    )
    columns = ("backend", "parties", "ms", "CPU ms", "background", "KB per client", "rounds", "error", "ranking")
    rows = [
        [
            name,
            one["carrier"],
            _milliseconds(one["seconds_per_query"]),
            _milliseconds(one["cpu_seconds_per_query"]),
            _milliseconds(one["background_cpu_seconds_per_query"]),
            f"{one['bytes_per_client'] / 1e3:,.1f}",
            f"{one['rounds']:g}",
            f"{one['max_abs_error']:.1e}",
            "same" if one["same_ranking"] else "WRONG",
        ]
        for name, one in report["backends"].items()
    ]
    table(title, columns, rows)
    of_parties = ("backend", "party", "CPU ms", "KB sent", "KB received", "messages sent")
    table("Per query and party; messages per batch", of_parties, _parties(report))
    _show_ratios(report)
    _show_peers(report)
    if report["load_average_before"] > report["cores"] / 2:
        say(
            f"this machine was busy before ({report['load_average_before']:.1f} processes on {report['cores']} cores): "
            "compare processor seconds, not seconds"
        )


def _parties(report: dict[str, Any]) -> list[list[str | int]]:
    return [
        [
            name,
            party,
            _milliseconds(one["cpu_seconds"]),
            f"{one['sent_bytes'] / 1e3:,.1f}",
            f"{one['received_bytes'] / 1e3:,.1f}",
            f"{one['sent_messages']:g}",
        ]
        for name, figures in report["backends"].items()
        for party, one in figures["parties"].items()
    ]


def _show_ratios(report: dict[str, Any]) -> None:
    names = list(report["backends"])
    if len(names) < 2:
        return
    for what, title in (("cpu_seconds", "processor seconds"), ("seconds", "seconds")):
        rows: list[list[str | int]] = [
            [name, *("1" if name == other else _ratio(report["ratios"][what][name].get(other)) for other in names)]
            for name in names
        ]
        table(f"{title}: how many times as much the row takes as the column", ("", *names), rows)


def _show_peers(report: dict[str, Any]) -> None:
    peers, over_peers = report["peers"], report["peer_ratios"]
    for name, peer in peers.items():
        what = "cpu_seconds_per_query" if name == UNPACKED else "seconds"
        say(f"{name}: {_milliseconds(peer[what])} {'CPU ms per query' if name == UNPACKED else 'ms'} ({peer['note']})")
    for name, over in over_peers.get(COMPARISON, {}).items():
        say(
            f"one comparison by CrypTen takes {_ratio(over[COMPARISON])} times the seconds of a query by {name}, and "
            f"ten argmaxes {_ratio(10 * over[ARGMAX])} times"
        )
    for name, over in over_peers.get(UNPACKED, {}).items():
        say(
            f"{UNPACKED} takes {_ratio(over['nothing_precomputed'])} times the processor seconds of the first batch of "
            f"{name}, which makes keys and tables, {_ratio(over['tables_kept'])} times those of a later one, and "
            f"{_ratio(over['computed_ahead'])} times those without what is computed in the background"
        )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f}"


def _ratio(ratio: float | None) -> str:
    if ratio is None:  # not with the same carrier
        return ""
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
