"""`report.html`: the result of a run, how it got there, what it cost, and who learned what."""

from collections.abc import Sequence
from typing import Any

from protocols.registry import AGGREGATIONS
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.report.charts import line_chart
from secure_kg.report.costs import bytes_per_round, memory, times
from secure_kg.report.html import Html, cards, details, document, figure, quiet, table, tag
from secure_kg.report.learned import adversary, privacy
from secure_kg.runs.split_record import blemish_note, leak_warning
from secure_kg.runs.summary import clients_tested

_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


def run_report(summary: dict[str, Any], evaluations: Sequence[dict[str, Any]], settings: str) -> str:
    """The page for `summary.json`, the lines of `metrics.jsonl` and the text of `config.toml`."""
    config = summary["config"]
    title = f"{STRATEGIES[config['strategy']].title} on {_data_name(config)}"
    return document(
        title,
        *_line("warning", leak_warning(summary)),
        tag("h1", title),
        quiet(_subtitle(summary)),
        cards(_figures(summary)),
        *_convergence(summary, evaluations),
        tag("h2", "Where the time went"),
        *times(summary),
        *bytes_per_round(summary, evaluations),
        tag("h2", "Results"),
        _results(summary),
        *_source(config),
        *_line("quiet", blemish_note(summary)),
        *_absences(summary),
        tag("h2", "Who learned what in this run"),
        privacy(summary),
        quiet(adversary(config)),
        *_audit(summary),
        details("All settings", tag("pre", settings)),
    )


def _figures(summary: dict[str, Any]) -> list[tuple[str, str]]:
    megabytes = (summary["bytes_up"] + summary["bytes_down"]) / 1e6
    return [
        *_scores(summary),
        (f"{summary['rounds']} ({summary['best_round']})", "rounds (best)"),
        (f"{summary['seconds_total']:.1f} s", "in all"),
        (f"{megabytes:.1f} MB", "sent and received"),
        *memory(summary),
    ]


def _scores(summary: dict[str, Any]) -> list[tuple[str, str]]:
    if summary["mrr"] is None:
        return [("sealed", "results are in the clients' own folders")]
    return [
        (f"{summary['mrr']:.4f}", "test MRR, tail side"),
        (f"{summary['both_sides']['mrr']:.4f}", "test MRR, both sides"),
        (f"{summary['hits@10']:.3f}", "Hits@10, tail side"),
    ]


def _subtitle(summary: dict[str, Any]) -> str:
    config = summary["config"]
    strategy = STRATEGIES[config["strategy"]]
    alignment = f"{config['alignment']} alignment, " if strategy.shared is not None else ""
    how = "all triples in one place, " if strategy.pools else f"{config['aggregation']} sums, {alignment}"
    return f"{config['training']['model']}, {clients_tested(summary)} clients, {how}seed {config['seed']}"


def _data_name(config: dict[str, Any]) -> str:
    return "the clients' own folders" if config.get("client_data") else f"{config['dataset']}, by {config['by']}"


def _convergence(summary: dict[str, Any], evaluations: Sequence[dict[str, Any]]) -> list[Html]:
    best = summary["best_round"]
    read = [line for line in evaluations if "valid" in line]  # none where clients alone can read, and are elsewhere
    mrr = line_chart([(line["round"], line["valid"]["mrr"]) for line in read], "round", "validation MRR", best)
    loss = line_chart([(line["round"], line["loss"]) for line in read], "round", "training loss", best)
    charts = (
        figure(mrr, "validation MRR of those present; dashed: the round kept"),
        figure(loss, "training loss, mean over these clients' triples"),
    )
    return [tag("h2", "Convergence"), tag("div", *charts, class_="charts")]


def _results(summary: dict[str, Any]) -> Html:
    head = ("", "test triples", "MRR", "Hits@1", "Hits@3", "Hits@10", "kB up", "kB down")
    entries = [(f"client {client['client']}", client) for client in summary["clients"]]
    if summary["mrr"] is not None:
        entries.append(("all", summary))
    body = [
        [
            name,
            f"{entry['test_triples']:,}",
            *(f"{entry[metric]:.4f}" for metric in _METRICS),
            f"{entry['bytes_up'] / 1000:,.0f}",
            f"{entry['bytes_down'] / 1000:,.0f}",
        ]
        for name, entry in entries
    ]
    return table(head, body)


def _line(style: str, text: str | None) -> list[Html]:
    return [] if text is None else [tag("p", text, class_=style)]


def _source(config: dict[str, Any]) -> list[Html]:
    if not AGGREGATIONS[config["aggregation"]].sealed:
        return []
    return [quiet("The server could not read these; they are from the clients' folders on this machine.")]


def _absences(summary: dict[str, Any]) -> list[Html]:
    """Nothing, if nobody was missing and every sum succeeded."""
    parts = []
    if summary["dropouts"]:
        body = [
            [
                f"client {dropout['client']}",
                str(dropout["round"]) if dropout["round"] else "set-up",
                dropout["step"],
                f"round {dropout['returned']}" if "returned" in dropout else "no",
            ]
            for dropout in summary["dropouts"]
        ]
        head: tuple[str, ...] = ("", "fell silent in round", "step", "came back")
        parts += [tag("h2", "Dropouts"), table(head, body, "text")]
    if summary["abandoned_sums"]:
        body = [[str(one["round"]), one["purpose"], one["reason"]] for one in summary["abandoned_sums"]]
        head = ("round", "sum of", "why")
        parts += [tag("h2", "Sums given up"), table(head, body, "text")]
    return parts


def _audit(summary: dict[str, Any]) -> list[Html]:
    """How to see what the server observed, if it was written down."""
    if not (summary.get("transcript") or summary["config"].get("transcript")):
        return []
    command = tag("code", "python -m launch.audit RUN --out DIR")
    told = "The server's transcript of this run was kept. What it really observed is told by "
    return [tag("p", told, command, ", where RUN is this folder and DIR is where audit.html goes.")]
