"""`report.html`: the result of a run, how it got there, what it cost, and who learned what."""

from collections.abc import Sequence

from protocols.registry import AGGREGATIONS
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.recorded import RecordedSettings
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.invocation import command
from secure_kg.report.charts import line_chart
from secure_kg.report.costs import bytes_per_round, memory, times
from secure_kg.report.html import Html, cards, details, document, figure, quiet, table, tag
from secure_kg.report.learned import adversary, privacy
from secure_kg.runs.records.client_result import ClientLine, Evaluation
from secure_kg.runs.records.summary import TITLES, Summary, written
from secure_kg.runs.split_record import blemish_note, leak_warning


def run_report(summary: Summary, evaluations: Sequence[Evaluation], config: str) -> str:
    """The page for `summary.json`, the lines of `metrics.jsonl` and the text of `config.toml`."""
    settings = summary.settings
    title = f"{STRATEGIES[settings.strategy].title} on {_data_name(settings)}"
    return document(
        title,
        *_line("warning", leak_warning(summary.leaks)),
        tag("h1", title),
        quiet(_subtitle(summary)),
        cards(_figures(summary)),
        *_convergence(summary, evaluations),
        tag("h2", "Where the time went"),
        *times(summary),
        *bytes_per_round(summary, evaluations),
        tag("h2", "Results"),
        _results(summary),
        *_types(summary),
        *_source(settings),
        *_line("quiet", blemish_note(summary.split_blemishes)),
        *_absences(summary),
        *_statement(summary),
        tag("h2", "Who learned what in this run"),
        privacy(summary),
        quiet(adversary(settings, summary.corrupt_clients)),
        *_audit(summary),
        details("All settings", tag("pre", config)),
    )


def _figures(summary: Summary) -> list[tuple[str, str]]:
    megabytes = (summary.bytes_up + summary.bytes_down) / 1e6
    return [
        *_scores(summary),
        (f"{summary.rounds} ({summary.best_round})", "rounds (best)"),
        (f"{summary.seconds_total:.1f} s", "in all"),
        (f"{megabytes:.1f} MB", "sent and received"),
        *memory(summary),
    ]


def _scores(summary: Summary) -> list[tuple[str, str]]:
    if not summary.told:
        return [("–", summary.untold)]
    figures = summary.figures
    if "mrr" not in figures:
        return [(f"{figures[name]:.4f}", f"test, {name}") for name in summary.scores[:3]]
    if "types" in figures:
        return [
            (f"{figures['mrr']:.4f}", "test MRR, hard answers"),
            (f"{figures['hits@3']:.4f}", "Hits@3, hard answers"),
            (f"{figures['hits@10']:.4f}", "Hits@10, hard answers"),
        ]
    both = (f"{figures['both_sides']['mrr']:.4f}", "test MRR, both sides")
    if summary.settings.model == "counts":
        both = ("no heads", "are ranked by a table of counts")
    return [
        (f"{figures['mrr']:.4f}", "test MRR, tail side"),
        both,
        (f"{figures['hits@10']:.3f}", "Hits@10, tail side"),
    ]


def _subtitle(summary: Summary) -> str:
    settings = summary.settings
    strategy = STRATEGIES[settings.strategy]
    alignment = f"{settings.alignment} alignment, " if Disclosed.of_summary(settings).aligned else ""
    how = "all triples in one place, " if strategy.pools else f"{settings.aggregation} sums, {alignment}"
    return f"{settings.model}, {summary.tested} clients, {how}seed {settings.seed}"


def _data_name(settings: RecordedSettings) -> str:
    return "the clients' own folders" if settings.client_data else f"{settings.dataset}, by {settings.by}"


def _convergence(summary: Summary, evaluations: Sequence[Evaluation]) -> list[Html]:
    best = summary.best_round
    # None where clients alone can read, and are elsewhere.
    read = [(line.round, line.figures) for line in evaluations if "valid" in line.figures]
    first = summary.scores[0]
    name = TITLES.get(first, first)
    score = line_chart([(number, told["valid"][first]) for number, told in read], "round", f"validation {name}", best)
    charts = [figure(score, f"validation {name} of those present; dashed: the round kept")]
    losses = [(number, told["loss"]) for number, told in read if "loss" in told]
    if losses or not read:
        loss = line_chart(losses, "round", "training loss", best)
        charts.append(figure(loss, f"training loss, mean over these clients' {summary.examples}"))
    return [tag("h2", "Convergence"), tag("div", *charts, class_="charts")]


def _results(summary: Summary) -> Html:
    scores = [TITLES.get(name, name) for name in summary.all_scores]
    examples = summary.examples
    head = ("", examples if examples == "examples" else f"test {examples}", *scores, "kB up", "kB down")
    entries: list[tuple[str, ClientLine | Summary]] = [(f"client {one.client}", one) for one in summary.clients]
    if summary.told:
        entries.append(("all", summary))
    body = [
        [
            whose,
            _number(entry),
            *(written(name, entry.figures[name]) if name in entry.figures else "" for name in summary.all_scores),
            f"{entry.bytes_up / 1000:,.0f}",
            f"{entry.bytes_down / 1000:,.0f}",
        ]
        for whose, entry in entries
    ]
    return tag("div", table(head, body), *([] if summary.told else [quiet(f"{summary.untold}.")]))


def _number(entry: ClientLine | Summary) -> str:
    """Of examples; a private run tells none of its clients'."""
    if isinstance(entry, ClientLine):
        return f"{entry.examples:,}" if entry.examples else ""
    return f"{entry.number_of_examples or 0:,}"


def _types(summary: Summary) -> list[Html]:
    """Results by type of query, if the run is one of queries."""
    types = summary.figures.get("types")
    if types is None:
        return []
    scores = summary.scores
    body = [
        [kind, f"{summary.figures['queries'][kind]:,}", *(written(name, found[name]) for name in scores)]
        for kind, found in types.items()
    ]
    head = ("all clients", "test queries", *(TITLES[name] for name in scores))
    return [
        tag("h2", "Results by type of query"),
        table(head, body),
        quiet("Means over a query's hard answers, over queries and over types."),
    ]


def _line(style: str, text: str | None) -> list[Html]:
    return [] if text is None else [tag("p", text, class_=style)]


def _source(settings: RecordedSettings) -> list[Html]:
    if not AGGREGATIONS[settings.aggregation].sealed:
        return []
    return [quiet("The server could not read these; they are from the clients' folders on this machine.")]


def _absences(summary: Summary) -> list[Html]:
    """Nothing, if nobody was missing and every sum succeeded."""
    parts = []
    if summary.dropouts:
        body = [
            [
                f"client {dropout.client}",
                str(dropout.round) if dropout.round else "set-up",
                dropout.step,
                "no" if dropout.returned is None else f"round {dropout.returned}",
            ]
            for dropout in summary.dropouts
        ]
        head: tuple[str, ...] = ("", "dropped out in round", "step", "came back")
        parts += [tag("h2", "Dropouts"), table(head, body, "text")]
    if summary.abandoned_sums:
        body = [[str(one.round), one.purpose, one.reason] for one in summary.abandoned_sums]
        head = ("round", "sum of", "why")
        parts += [tag("h2", "Sums abandoned"), table(head, body, "text")]
    return parts


def _statement(summary: Summary) -> list[Html]:
    """Of a run that is differentially private."""
    if (statement := summary.statement) is None:
        return []
    return [tag("h2", "Differential privacy"), *(tag("p", line) for line in statement.lines())]


def _audit(summary: Summary) -> list[Html]:
    """How to see what the server observed, if it was written down."""
    if summary.transcript is None and not summary.settings.transcript:
        return []
    audit = tag("code", f"{command('launch.audit')} RUN --out DIR")
    told = "The server's transcript of this run was kept. What it really observed is told by "
    return [tag("p", told, audit, ", where RUN is this folder and DIR is where audit.html goes.")]
