"""The page of `launch.compare`: finished runs side by side."""

from collections.abc import Sequence
from typing import Final

from secure_kg.report.charts import SERIES_COLOURS, legend, lines_chart, stacked_bars
from secure_kg.report.comparison import ComparedRun, Value, differing, subjects, warnings
from secure_kg.report.html import Html, bullets, document, figure, megabytes, quiet, section, stacked_table, table, tag
from secure_kg.runs.records.summary import TITLES, written

_NONE: Final = "–"
_LITTLE: Final = 0.005
"""Seconds that are not worth a part of a bar."""


def comparison_page(runs: Sequence[ComparedRun]) -> str:
    """Results first, then what the runs differ in, how they came there, what they cost, and who learned what."""
    title = f"{len(runs)} runs side by side"
    return document(
        title,
        tag("h1", title),
        bullets(tag("span", tag("b", run.name), f": {run.how}, {run.summary.settings.model}") for run in runs),
        *_warned(runs),
        section("results", "Test results", _results(runs), *_types(runs)),
        section("settings", "Settings that differ", _settings(runs)),
        section("curves", "Convergence", *_curves(runs)),
        section("costs", "Costs", *_costs(runs)),
        section("dropouts", "Dropouts", _dropouts(runs)),
        section("learned", "Who learned what", *_learned(runs)),
        *_privacy(runs),
    )


def _results(runs: Sequence[ComparedRun]) -> Html:
    names = list(dict.fromkeys(name for run in runs for name in run.summary.scores))
    best = _best(runs) if not warnings(runs) else None
    body = []
    for run in runs:
        summary = run.summary
        cells = [_score(run, name, best=run is best and name == summary.scores[0]) for name in names]
        tested = f"{summary.number_of_examples or 0:,} {summary.examples}" if summary.told else summary.untold
        both = summary.figures.get("both_sides") or {}
        sides = f"{both['mrr']:.4f}" if "mrr" in both else _NONE
        rounds = f"{summary.rounds} ({summary.best_round})"
        body.append([run.name, tested, *cells, sides, rounds])
    scores = [TITLES.get(name, name) for name in names]
    sides = "Tail side, filtered; of queries hard answers. Bold: the best of runs whose figures compare."
    return tag("div", table(("run", "tested on", *scores, "MRR, both sides", "rounds (best)"), body), quiet(sides))


def _warned(runs: Sequence[ComparedRun]) -> list[Html]:
    texts = warnings(runs)
    return [tag("div", *(tag("div", text) for text in texts), class_="warning")] if texts else []


def _best(runs: Sequence[ComparedRun]) -> ComparedRun | None:
    told = [run for run in runs if run.summary.told and "mrr" in run.summary.figures]
    return max(told, key=lambda run: float(run.summary.figures["mrr"]), default=None)


def _score(run: ComparedRun, name: str, *, best: bool) -> str:
    value = run.summary.figures.get(name)
    if not isinstance(value, int | float):
        return _NONE
    return tag("b", written(name, value)) if best else written(name, value)


def _types(runs: Sequence[ComparedRun]) -> list[Html]:
    """MRR by type of query, of the runs that have any."""
    types = [(run, run.summary.figures.get("types") or {}) for run in runs]
    kinds = list(dict.fromkeys(kind for _, found in types for kind in found))
    if not kinds:
        return []
    body = [[run.name, *(f"{found[kind]['mrr']:.4f}" if kind in found else _NONE for kind in kinds)]
            for run, found in types if found]  # fmt: skip
    return [tag("h4", "MRR by type of query"), table(("run", *kinds), body)]


def _settings(runs: Sequence[ComparedRun]) -> Html:
    if not (different := differing(runs)):
        return quiet("None: the same run was done again.")
    body = [[name.replace("_", " "), *map(told, values)] for name, values in different.items()]
    return table(("", *(run.name for run in runs)), body, "text")


def told(value: Value) -> str:
    """A setting as people write it."""
    match value:
        case None | "":
            return _NONE
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
    return str(value)


def _curves(runs: Sequence[ComparedRun]) -> list[Html]:
    name = runs[0].summary.scores[0]
    title = TITLES.get(name, name)
    score = [(run.name, run.curve("valid", run.summary.scores[0])) for run in runs]
    loss = [(run.name, run.curve("loss")) for run in runs]
    shown = [
        figure(lines_chart(lines, "round", label), caption)
        for lines, label, caption in (
            (score, f"validation {title}", f"validation {title} by round"),
            (loss, "training loss", "training loss by round"),
        )
        if any(points for _, points in lines)
    ]
    sealed = [run.name for run in runs if not run.curve("valid", run.summary.scores[0])]
    note = [quiet(f"Without a curve, because nobody here may or can read it: {', '.join(sealed)}.")] if sealed else []
    return [tag("div", *shown, class_="charts"), *note]


def _costs(runs: Sequence[ComparedRun]) -> list[Html]:
    phases = [name for name in dict.fromkeys(name for run in runs for name in run.summary.seconds)
              if any(run.summary.seconds.get(name, 0.0) >= _LITTLE for run in runs)]  # fmt: skip
    styles = {phase: f"s{number % SERIES_COLOURS}" for number, phase in enumerate(phases)}
    bars = [(run.name, [(styles[phase], run.summary.seconds.get(phase, 0.0)) for phase in phases]) for run in runs]
    chart = tag("div", stacked_bars(bars, "s"), legend(list(styles.items())))
    seconds = [
        [run.name, f"{run.summary.seconds_total:,.1f}",
         *(f"{run.summary.seconds.get(phase, 0.0):,.2f}" for phase in phases)]
        for run in runs
    ]  # fmt: skip
    parts = list(runs[0].bytes_by_phase)
    sent = [
        [f"{run.name}, {way}", *(megabytes(run.bytes_by_phase[phase][place]) for phase in parts), megabytes(total)]
        for run in runs
        for place, (way, total) in enumerate((("up", run.summary.bytes_up), ("down", run.summary.bytes_down)))
    ]
    return [
        figure(chart, "seconds per client by phase; unmask, and all of a private run: server"),
        table(("run", "in all", *phases), seconds, caption="the same in figures; in all includes start-up"),
        table(("run", *parts, "in all"), sent, caption="bytes of all clients, up to the server and down from it"),
        quiet("Rounds include their evaluations; results are what comes after the last one."),
    ]


def _dropouts(runs: Sequence[ComparedRun]) -> Html:
    body = [
        [run.name, f"client {one.client}", f"round {one.round}" if one.round else "set-up", one.step,
         "no" if one.returned is None else f"round {one.returned}"]
        for run in runs for one in run.summary.dropouts
    ]  # fmt: skip
    body += [
        [run.name, "all", f"round {one.round}", f"sum of {one.purpose} abandoned: {one.reason}", ""]
        for run in runs
        for one in run.summary.abandoned_sums
    ]
    if not body:
        return quiet("None, and no sum was abandoned.")
    return table(("run", "who", "when", "step", "came back"), body, "text")


def _learned(runs: Sequence[ComparedRun]) -> list[Html]:
    parts = []
    for place, party in enumerate(("The server learned", "Another client learned")):
        body = [
            [subject, *(run.learned(subject)[place] or _NONE for run in runs)] for subject in subjects(runs)
        ]
        parts += [tag("h3", party), stacked_table(("about", *(run.name for run in runs)), body)]
    return [*parts, quiet(f"{_NONE}: the run has nothing of the kind.")]


def _privacy(runs: Sequence[ComparedRun]) -> list[Html]:
    statements = [(run.name, statement) for run in runs if (statement := run.summary.statement) is not None]
    if not statements:
        return []
    parts = [part for name, statement in statements
             for part in (tag("h3", name), *(tag("p", line) for line in statement.lines()))]  # fmt: skip
    without = [run.name for run in runs if run.summary.statement is None]
    parts += [quiet(f"Without differential privacy: {', '.join(without)}.")] if without else []
    return [section("privacy", "Differential privacy", *parts)]
