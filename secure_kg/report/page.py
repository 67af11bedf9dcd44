"""`report.html`: the result of a run, how it got there, what it cost, and who learned what."""

from collections.abc import Sequence
from html import escape
from typing import Any

from secure_kg.federation.split_record import blemish_note, leak_warning
from secure_kg.federation.strategy import STRATEGIES
from secure_kg.federation.summary import clients_tested
from secure_kg.report.charts import bar_chart, line_chart

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --quiet: #667085; --paper: #fff; --edge: #d8dde6; --main: #2563a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --quiet: #9aa4b5; --paper: #14181f; --edge: #333b48; --main: #6aa9ee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.quiet { color: var(--quiet); margin: .2rem 0 0; }
.warning { border: 2px solid #c62828; border-radius: .5rem; padding: .6rem .8rem; margin: 0 0 1rem; font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.card { border: 1px solid var(--edge); border-radius: .5rem; padding: .6rem .8rem; }
.card b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: .85rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1.25rem; }
figure { margin: 0; } figcaption { color: var(--quiet); font-size: .9rem; }
svg { width: 100%; height: auto; } .grid { stroke: var(--edge); } .mark { stroke: var(--quiet); stroke-dasharray: 4 4; }
.line { fill: none; stroke: var(--main); stroke-width: 2; } .dot, .bar { fill: var(--main); }
.tick { fill: var(--quiet); font-size: 13px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--edge); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } .text td { text-align: left; white-space: normal; }
.text th { text-align: left; white-space: normal; } .bars { max-width: 42rem; }
details { margin-top: 1.5rem; } pre { overflow-x: auto; font-size: .85rem; }
@media print { body { font-size: 11pt; } .card, figure, table { break-inside: avoid; } }
"""
_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


def run_report(summary: dict[str, Any], evaluations: Sequence[dict[str, Any]], settings: str) -> str:
    """The page for `summary.json`, the lines of `metrics.jsonl` and the text of `config.toml`."""
    config = summary["config"]
    title = f"{STRATEGIES[config['strategy']].title} on {_data_name(config)}"
    megabytes = (summary["bytes_up"] + summary["bytes_down"]) / 1e6
    cards = [
        *_scores(summary),
        (f"{summary['rounds']} ({summary['best_round']})", "rounds (best)"),
        (f"{summary['seconds_total']:.1f} s", "in all"),
        (f"{megabytes:.1f} MB", "sent and received"),
    ]
    best = summary["best_round"]
    read = [line for line in evaluations if "valid" in line]  # none where clients alone can read, and are elsewhere
    mrr = line_chart([(line["round"], line["valid"]["mrr"]) for line in read], "round", "validation MRR", best)
    loss = line_chart([(line["round"], line["loss"]) for line in read], "round", "training loss", best)
    phases = bar_chart(list(summary["seconds"].items()), "s")
    return "".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            *_line("warning", leak_warning(summary)),
            f"<h1>{escape(title)}</h1>",
            f"<p class='quiet'>{escape(_subtitle(summary))}</p>",
            "<div class='cards'>",
            *(f"<div class='card'><b>{value}</b><span>{label}</span></div>" for value, label in cards),
            "</div><h2>Convergence</h2><div class='charts'>",
            f"<figure>{mrr}<figcaption>validation MRR of those present; dashed: the round kept</figcaption></figure>",
            f"<figure>{loss}<figcaption>training loss, mean over these clients' triples</figcaption></figure>",
            "</div><h2>Where the time went</h2>",
            f"<figure class='bars'>{phases}<figcaption>seconds per client; unmask: server</figcaption></figure>",
            "<h2>Results</h2><div class='scroll'>",
            _results(summary),
            "</div>",
            *_source(config),
            *_line("quiet", blemish_note(summary)),
            *_absences(summary),
            "<h2>Who learned what in this run</h2><div class='scroll'>",
            _privacy(summary),
            f"</div><p class='quiet'>{escape(_adversary(config))}</p>",
            f"<details><summary>All settings</summary><pre>{escape(settings)}</pre></details></body></html>\n",
        ]
    )


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


def _results(summary: dict[str, Any]) -> str:
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
    return _table("", head, body)


def _line(style: str, text: str | None) -> list[str]:
    return [] if text is None else [f"<p class='{style}'>{escape(text)}</p>"]


def _source(config: dict[str, Any]) -> list[str]:
    if config["aggregation"] != "secret":
        return []
    return ["<p class='quiet'>The server could not read these; they are from the clients' folders on this machine.</p>"]


def _absences(summary: dict[str, Any]) -> list[str]:
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
        parts += ["<h2>Dropouts</h2><div class='scroll'>", _table("text", head, body), "</div>"]
    if summary["abandoned_sums"]:
        body = [[str(one["round"]), one["purpose"], one["reason"]] for one in summary["abandoned_sums"]]
        head = ("round", "sum of", "why")
        parts += ["<h2>Sums given up</h2><div class='scroll'>", _table("text", head, body), "</div>"]
    return parts


def _adversary(config: dict[str, Any]) -> str:
    if STRATEGIES[config["strategy"]].pools:
        return "All triples in one place violate the privacy of every client; this run is there to be compared with."
    if config["aggregation"] == "plain":
        return "Plain sums protect nothing; they are there to be measured against."
    server = (
        "a server that may break the protocol (clients signed keys and survivors)"
        if config["adversary"] == "active"
        else "a server that follows the protocol but is curious"
    )
    alone = (
        " Secret sums and the private alignment hold against the server alone: one client on its side can open the "
        "sums, or test names it guesses, but no single client's values."
    )
    return f"Against {server}, together with up to {config['max_corrupt']:.0%} of a sum's participants." + alone


def _privacy(summary: dict[str, Any]) -> str:
    config = summary["config"]
    if STRATEGIES[config["strategy"]].pools:
        everything = ["triples, rows and metrics of every client", "all of them"]
        return _table("text", ("", "whoever ran this learned"), [everything])
    shared = STRATEGIES[config["strategy"]].shared
    learned = {"plain": "every client's", "secagg": "their sums only", "secret": "nothing"}[config["aggregation"]]
    rows = []
    if shared is not None:
        least, kept = config["min_holders"], summary["rows_kept_local"]
        rows.append([f"values of {shared} rows", learned, "the mean rows"])
        if least > 1:
            rows.append([_kept_local(kept, summary["shared_rows"], least), "nothing", "nothing"])
        rows.append([f"{shared} names", _names_learned(config), "none but its own"])
        counts = "yes, from the sums" if config["aggregation"] == "secret" else "no"
        rows.append(["how many hold a row", _counts_learned(config), counts])
    metrics = "their sums" if config["aggregation"] == "secret" else "none"
    rows.append(["validation and test metrics", learned, metrics])
    rows.append(["triples and rows that are not shared", "none", "none but its own"])
    secure = config["aggregation"] != "plain"
    rows.append(["who took part in which sum", "yes", "who of its neighbours dropped out" if secure else "nothing"])
    if shared is not None:
        lost = f"at most {summary['max_fixed_point_error']:.1e} per value; {summary['clipped_values']:,} values clipped"
        rows.append(["what fixed-point encoding lost", lost, ""])
    return _table("text", ("", "the server learned", "another client learned"), rows)


def _kept_local(kept: int | None, rows: int, least: int) -> str:
    which = f"rows held by fewer than {least} clients"
    return which if kept is None else f"{which}: {kept} of {rows} stayed local"


def _names_learned(config: dict[str, Any]) -> str:
    if config["alignment"] == "plain":
        return "every client's (plain alignment)"
    return "the names, not who holds them" if config["reveal_names"] else "how many there are"


def _counts_learned(config: dict[str, Any]) -> str:
    if config["aggregation"] == "secret":
        return "no"
    return "yes" if config["aggregation"] == "plain" or config["min_holders"] < 2 else "of rows that were added up"


def _table(style: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    columns = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table class='{style}'><thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table>"
