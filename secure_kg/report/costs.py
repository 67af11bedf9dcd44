"""Report section on costs: seconds by phase and client, processor seconds, memory, bytes by round."""

from collections.abc import Mapping, Sequence

from secure_kg.report.charts import SERIES_COLOURS, bar_chart, column_chart, legend, stacked_bars
from secure_kg.report.html import Html, details, figure, table, tag
from secure_kg.report.rounds import between_evaluations
from secure_kg.runs.records.client_result import ClientLine, Evaluation
from secure_kg.runs.records.summary import PeakMemory, Summary


def times(summary: Summary) -> list[Html]:
    """Seconds by phase, of the processor too where they were measured, and by client."""
    wall = figure(bar_chart(list(summary.seconds.items()), "s"), _whose(summary))
    charts = [wall]
    if summary.cpu_seconds:
        processor = bar_chart(list(summary.cpu_seconds.items()), "s")
        charts.append(figure(processor, "the same in seconds of the processor: waiting costs none"))
    return [tag("div", *charts, class_="charts"), *_by_client(summary.clients)]


def _whose(summary: Summary) -> str:
    return "seconds per client; unmask: server" if summary.times_of_clients else "seconds of the server"


def _by_client(clients: Sequence[ClientLine]) -> list[Html]:
    """Nothing where clients have told nothing, or only one has."""
    told = [(f"client {client.client}", client.seconds) for client in clients if client.seconds]
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


def memory(summary: Summary) -> list[tuple[str, str]]:
    """Cards; none where it was not measured."""
    peak = summary.peak_memory_mb
    if not isinstance(peak, PeakMemory):
        return [] if peak is None else [(f"{peak:,.0f} MB", "peak memory")]
    told = (peak.server, "peak memory, server"), (peak.client_max, "peak memory, largest client")
    return [(f"{size:,.0f} MB", label) for size, label in told if size is not None]


def bytes_per_round(summary: Summary, evaluations: Sequence[Evaluation]) -> list[Html]:
    columns = between_evaluations(evaluations, summary.setup)
    if not any(up or down for _, (up, down) in columns):
        return []
    chart = column_chart(columns, ("to the server", "from the server"), "MB", "round")
    caption = "megabytes per round, mean since the evaluation before; set-up and test not counted"
    return [tag("h2", "What went over the wire"), figure(chart, caption, "narrow")]
