"""The report for people: on the terminal, and as a section of a Markdown page."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.reproduction.table import TITLES
from secure_kg.foundation.console import say, table
from secure_kg.foundation.words import seconds_text

Record = dict[str, Any]
Rows = list[list[str]]
_NONE = "–"
_NAMES = {
    **{"mrr": "MRR", "hits@1": "Hits@1", "hits@3": "Hits@3", "hits@5": "Hits@5", "hits@10": "Hits@10"},
    **{"cross mrr": "cross MRR", "cross hits@3": "cross Hits@3"},
    **{"both mrr": "both MRR", "both hits@1": "both Hits@1"},
    **{"both hits@3": "both Hits@3", "both hits@10": "both Hits@10"},
}


def show(report: Record) -> None:
    """On standard output: the figures the paper has, then who is ahead of whom, then what went wrong."""
    columns, rows = _figures(report, everything=False)
    table(report["title"], columns, rows)
    columns, rows = _differences(report)
    if rows:
        table("the order of strategies, seed by seed", columns, rows)
    for line in (*_claims(report), *_deviations(report), *_tuned(report), *_warnings(report)):
        say(line)
    say(
        f"{seconds_text(report['seconds_spent'])} in all; --markdown and --json also have Hits@N, single runs and notes"
    )


def markdown(report: Record, *, heading: str | None = None, notes: bool = True) -> str:
    """A section of its own, with all that is needed to judge the figures and to make them again."""
    lines = [heading or f"## {report['title']}", "", "```", report["command"], "```", ""]
    runs = [run for run in report["runs"] if run["seconds_spent"] is not None]
    each = [run["seconds_spent"] for run in runs]
    time = f"{len(each)} runs took {seconds_text(report['seconds_spent'])}"
    if each:
        time += f", {seconds_text(min(each))} to {seconds_text(max(each))} each"
    commits = report["commits_of_runs"] or [report["commit"] or "unknown"]
    lines += [f"{report['date']}, commit {' and '.join(commits)}; {time}.", ""]
    settings = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in report["settings"].items())
    lines += [f"Settings: {settings}; seeds {', '.join(map(str, report['seeds']))}.", ""]
    lines += [*_deviations(report), *_tuned(report), ""]
    lines += [*markdown_table(*_figures(report, everything=True)), ""]
    lines += ["± is the half width of the 95 % interval of the mean over seeds (Student's t).", ""]
    columns, rows = _differences(report)
    if rows:
        lines += [*markdown_table(columns, rows), ""]
        lines += ['Differences are between runs with the same seed; "clearly": the interval does not hold 0.', ""]
    lines += [f"- {line}" for line in (*_claims(report), *_warnings(report))]
    if notes:
        lines += ["", "What cannot be as in the paper, or is not said there:", ""]
        lines += [f"- {note}" for note in report["notes"]]
    lines += ["", "<details><summary>Single runs</summary>", "", *markdown_table(*_runs(report)), "", "</details>"]
    return "\n".join(lines) + "\n"


def _figures(report: Record, *, everything: bool) -> tuple[list[str], Rows]:
    """One line for each cell. On the terminal the first metric must do, for its width."""
    cells = report["cells"]
    printed = {metric for cell in cells for metric in cell["paper"]}
    metrics = report["metrics"] if everything else report["metrics"][: report["shown"]]
    columns = ["data/clients", "model", *(["part"] if report["per_client"] else []), "strategy"]
    for metric in metrics:
        columns += [f"{_NAMES[metric]} paper"] if metric in printed else []
        columns += [f"{_NAMES[metric]} here" if metric in printed else _NAMES[metric]]
    columns += ["seeds", "rounds (best)", "s / run"] if everything else ["seeds", "s / run"]
    rows = []
    for cell in cells:
        row = [f"{cell['dataset']}/{cell['clients']}", cell["model"]]
        row += [cell["part"]] if report["per_client"] else []
        row += [TITLES[cell["strategy"]]]
        for place, metric in enumerate(metrics):
            row += [_number(cell["paper"].get(metric))] if metric in printed else []
            ours = cell["ours"].get(metric)
            text = _with_interval if place < report["shown"] else _mean
            row += [text(ours) if ours else _absent(cell)]
        row += [_seeds(cell)]
        if everything:
            row += [_NONE if cell["rounds"] is None else f"{cell['rounds']:.0f} ({cell['best_round'] or 0:.0f})"]
        row += [_NONE if cell["seconds_per_run"] is None else f"{cell['seconds_per_run']:.0f}"]
        rows.append(row)
    return columns, rows


def _differences(report: Record) -> tuple[list[str], Rows]:
    part = ["part"] if report["per_client"] else []
    columns = ["data/clients", "model", *part, "claim (MRR)", "paper", "here", "holds here"]
    rows = []
    for one in report["differences"]:
        row = [f"{one['dataset']}/{one['clients']}", one["model"], *([one["part"]] if part else []), one["claim"]]
        row += [_NONE if one["paper"] is None else f"{one['paper']:+.4f}"]
        row += [_NONE if one["ours"] is None else _with_interval(one["ours"], sign="+")]
        rows.append([*row, one["verdict"]])
    return columns, rows


def _runs(report: Record) -> tuple[list[str], Rows]:
    columns = ["run", "state", "MRR", "MRR both sides", "rounds", "best", "seconds", "largest process, MB"]
    rows = []
    for run in report["runs"]:
        row = [run["run"], run["state"], _number(run.get("mrr")), _number((run.get("both_sides") or {}).get("mrr"))]
        row += [_plain(run.get(name)) for name in ("rounds", "best_round")]
        row += [_whole(run[name]) for name in ("seconds_spent", "peak_memory_mb")]
        rows.append(row)
    return columns, rows


def _claims(report: Record) -> Iterator[str]:
    for claim in report["claims"]:
        paper, ours, same = claim["paper"], claim["ours"], claim["same_as_paper"]
        text = (
            f"{claim['claim']}: in the paper in {paper['holds']} of {paper['cells']} cells"
            if paper["cells"]
            else (f"{claim['claim']}: no figures in the paper")
        )
        if ours["cells"]:
            text += f"; here in {ours['holds']} of {ours['cells']}"
            if ours["with_interval"]:
                text += f" (clearly in {ours['clearly']}, clearly not in {ours['clearly_not']})"
            else:
                text += " (one seed, so nobody knows how much of it is chance)"
        else:
            text += "; not measured here"
        if same["cells"]:
            text += f"; the same answer as the paper's in {same['same']} of {same['cells']}"
        yield text


def _deviations(report: Record) -> Iterator[str]:
    if not report["deviations"]:
        yield "Settings are the paper's."
    else:
        changes = [f"{one['setting']} {_plain(one['here'])} for {_plain(one['paper'])}" for one in report["deviations"]]
        yield f"Not as in the paper: {', '.join(changes)}."


def _tuned(report: Record) -> Iterator[str]:
    for strategy, changes in report["tuned"].items():
        yield f"{TITLES[strategy]} alone: {', '.join(f'{name} {_plain(value)}' for name, value in changes.items())}."


def _warnings(report: Record) -> Iterator[str]:
    """What a reader of the figures must know of single runs."""
    states = [run["state"] for run in report["runs"]]
    for run in report["runs"]:
        if run["state"] == "failed":
            yield f"failed: {run['run']}: {run['error']}"
        for dropout in run.get("dropouts") or ():
            yield f"{run['run']}: client {dropout.get('client')} dropped out in round {dropout.get('round')}"
        if leak := run.get("leaky_split"):
            leaked = f"{leak.get('test_trained_on')} of {leak.get('test_triples')} test triples"
            yield f"{run['run']}: {leaked} stand in some client's train part, so its figures are too good"
    left = sum(state in ("missing", "interrupted") for state in states)
    if left:
        yield f"{left} of {len(states)} runs are still to be done: the same command goes on with them"


def _absent(cell: Record) -> str:
    """What to say where there is no figure: the worst of the runs' states."""
    states = set(cell["states"].values())
    return next((state for state in ("failed", "interrupted", "missing") if state in states), _NONE)


def _seeds(cell: Record) -> str:
    done = sum(state == "finished" for state in cell["states"].values())
    return str(done) if done == len(cell["states"]) else f"{done} of {len(cell['states'])}"


def _with_interval(value: Record, sign: str = "") -> str:
    mean = format(value["mean"], f"{sign}.4f")
    if value["interval_95"] is None:
        return mean
    low, high = value["interval_95"]
    return f"{mean} ± {(high - low) / 2:.4f}"


def _mean(value: Record) -> str:
    return _number(value["mean"])


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.4f}"


def _whole(value: float | None) -> str:
    return _NONE if value is None else f"{value:.0f}"


def _plain(value: object) -> str:
    return _NONE if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def markdown_table(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    line: Callable[[Sequence[str]], str] = lambda cells: "| " + " | ".join(cells) + " |"  # noqa: E731
    yield line(columns)
    yield line(["---"] * len(columns))
    yield from map(line, rows)
