"""Report section on costs: seconds by phase and client, processor seconds, memory, bytes by round."""

from collections.abc import Mapping, Sequence
from typing import Any

from secure_kg.report.charts import SERIES_COLOURS, bar_chart, column_chart, legend, stacked_bars
from secure_kg.report.html import Html, details, figure, table, tag
from secure_kg.report.rounds import between_evaluations


def times(summary: dict[str, Any]) -> list[Html]:
    """Seconds by phase, of the processor too where they were measured, and by client."""
    wall = figure(bar_chart(list(summary["seconds"].items()), "s"), "seconds per client; unmask: server")
    charts = [wall]
    if summary.get("cpu_seconds"):
        processor = bar_chart(list(summary["cpu_seconds"].items()), "s")
        charts.append(figure(processor, "the same in seconds of the processor: waiting costs none"))
    return [tag("div", *charts, class_="charts"), *_by_client(summary["clients"])]


def _by_client(clients: Sequence[Mapping[str, Any]]) -> list[Html]:
    """Nothing where clients have told nothing, or only one has."""
    told = [(f"client {client['client']}", client["seconds"]) for client in clients if client.get("seconds")]
    phases = [phase for phase in dict.fromkeys(name for _, seconds in told for name in seconds) if _any(told, phase)]
    if len(told) < 2 or not phases:
        return []
    styles = {phase: f"s{number % SERIES_COLOURS}" for number, phase in enumerate(phases)}
    bars = [(name, [(styles[phase], seconds.get(phase, 0.0)) for phase in phases]) for name, seconds in told]
    chart = tag("div", stacked_bars(bars, "s"), legend(list(styles.items())))
    body = [[name, *(f"{seconds.get(phase, 0.0):,.2f}" for phase in phases)] for name, seconds in told]
    figures = table(("", *phases), body, caption="seconds of each client by phase")
    return [figure(chart, "seconds of each client by phase"), details("Seconds as a table", figures)]


def _any(told: Sequence[tuple[str, Mapping[str, float]]], phase: str) -> bool:
    return any(seconds.get(phase, 0.0) >= 0.005 for _, seconds in told)


def memory(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Cards; none where it was not measured."""
    peak = summary.get("peak_memory_mb")
    if isinstance(peak, int | float):
        return [(f"{peak:,.0f} MB", "peak memory")]
    names = {"server": "peak memory, server", "client_max": "peak memory, largest client"}
    return [(f"{peak[key]:,.0f} MB", label) for key, label in names.items() if peak and peak.get(key) is not None]


def bytes_per_round(summary: dict[str, Any], evaluations: Sequence[dict[str, Any]]) -> list[Html]:
    columns = between_evaluations(evaluations, summary.get("setup") or {})
    if not any(up or down for _, (up, down) in columns):
        return []
    chart = column_chart(columns, ("to the server", "from the server"), "MB", "round")
    caption = "megabytes per round, mean since the evaluation before; set-up and test not counted"
    return [tag("h2", "What went over the wire"), figure(chart, caption, "narrow")]
