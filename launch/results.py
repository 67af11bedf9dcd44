"""Closing lines of a job: one table, then a few lines."""

from collections.abc import Sequence
from pathlib import Path

from launch.counting import say_counting
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.recorded import RecordedSettings
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.runs.records.record import Figures
from secure_kg.runs.records.summary import TITLES, Summary, written
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.split_record import blemish_note, leak_warning
from secure_kg.runs.summary import comparable


def show_results(summary: Summary, folder: Path, *, has_data: bool = True) -> None:
    """`has_data`: whoever reads it could train on the same data in another way, and is told how."""
    if warning := leak_warning(summary.leaks):  # before any figure
        say(warning)
    settings, names = summary.settings, summary.scores
    ranked, examples = "mrr" in names, summary.examples
    tested = {"triples": " tails, filtered", "queries": ", hard answers"}.get(examples, "")
    title = (
        f"{STRATEGIES[settings.strategy].title} on {_data(settings)}, {settings.model}, "
        f"{summary.tested if summary.told else summary.number_of_clients} clients, {settings.aggregation}: test{tested}"
    )
    rows = [
        [f"client {one.client}", one.examples or "", *_row(one.figures, names, one.bytes_up, one.bytes_down)]
        for one in summary.clients
    ]
    if summary.told:
        sizes = summary.bytes_up, summary.bytes_down
        rows.append(["all", summary.number_of_examples or 0, *_row(summary.figures, names, *sizes)])
    scores = [TITLES.get(name, name) for name in names]
    table(title, ("", examples, *scores, "kB up", "kB down"), rows)
    if not summary.told:
        say(f"rounds {summary.rounds}, best {summary.best_round}; {summary.untold}")
    elif ranked:
        _say_ranks(summary)
    else:
        say(f"rounds {summary.rounds}, best {summary.best_round}")
    phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in summary.seconds.items())
    whose = "per client" if summary.times_of_clients else "of the server"
    say(f"seconds {whose}: {phases}; with start-up {summary.seconds_total:.1f} in all")
    if note := blemish_note(summary.split_blemishes):
        say(note)
    _say_dropouts(summary)
    _say_privacy(summary)
    if (statement := summary.statement) is not None:
        for line in statement.lines():
            say(f"differential privacy: {line}")
    beside = _beside_this(summary, folder)
    if beside or has_data:
        _compare(summary, beside)
    say_counting(summary, [other for _, other in beside])
    say(f"run folder: {folder}  (report: {folder / 'report.html'})")


def _say_ranks(summary: Summary) -> None:
    """What the table has no room for."""
    best = f"rounds {summary.rounds}, best {summary.best_round} by validation MRR {summary.valid_mrr:.4f}"
    if summary.statement is not None and not summary.best_round:
        best = f"rounds {summary.rounds}, the last one kept, without validation"
    if (types := summary.figures.get("types")) is not None:
        told = ", ".join(f"{kind} {one['mrr']:.4f}" for kind, one in types.items())
        say(f"{best}; MRR by type: {told}")
        return
    if summary.settings.model == "counts":
        say(f"{best}; tail side only: a table of counts ranks no heads")
        return
    both = summary.figures["both_sides"]
    say(f"{best}; both sides: MRR {both['mrr']:.4f}, Hits@10 {both['hits@10']:.4f}")
    if more := [name for name in summary.all_scores if name not in summary.scores]:
        told = ", ".join(f"{TITLES[name]} {written(name, summary.figures[name])}" for name in more)
        say(f"tail side, all clients: {told}")


def _say_dropouts(summary: Summary) -> None:
    for dropout in summary.dropouts:
        when = f"in round {dropout.round}" if dropout.round else "during set-up"
        end = "did not come back" if dropout.returned is None else f"came back in round {dropout.returned}"
        say(f"dropout: client {dropout.client} dropped out {when} ({dropout.step}) and {end}")
    for one in summary.abandoned_sums:
        say(f"no sum of {one.purpose} in round {one.round}: {one.reason}")


def _say_privacy(summary: Summary) -> None:
    settings = summary.settings
    strategy = STRATEGIES[settings.strategy]
    if strategy.pools and summary.number_of_clients > 1:  # one graph is nobody else's
        say(f"not private: one process read the triples of all {summary.number_of_clients} clients")
    disclosed = Disclosed.of_summary(settings)
    if disclosed.shared is None:
        return
    active = settings.adversary == "active"
    trust = "even if it breaks the protocol" if active else "if it follows the protocol"
    lost = "noise on every entry" if summary.statement is not None else "clients know what rounding and clipping cost"
    if summary.max_fixed_point_error is not None:
        lost = f"fixed-point error at most {summary.max_fixed_point_error:.1e}, {summary.clipped_values} values clipped"
        if summary.clipped_values:
            lost += f" (fewer with a larger --clip than {summary.config['clip']:g}, and all values coarser)"
    say(disclosed.fill(disclosed.sums.disclosure.in_brief, trust=trust, lost=lost))
    for sums in disclosed.other_sums:
        told = disclosed.fill(sums.disclosure.in_brief, trust=trust, lost=lost)
        say(f"of what clients share beside {disclosed.shared} rows, {told}")
    if disclosed.aligned:
        _say_kept_local(summary, disclosed)
        say(disclosed.fill(disclosed.of_alignment[-1].in_brief, trust=trust, lost=lost))
    more = disclosed.sums.disclosure.changing_clients
    if more and (settings.client_fraction < 1 or summary.dropouts):
        say(f"but {disclosed.fill(more)}")


def _say_kept_local(summary: Summary, disclosed: Disclosed) -> None:
    kept, least = summary.rows_kept_local, disclosed.least_holders
    if summary.statement is not None:
        say("every client added to every row, with noise: no sum tells who holds a row")
        return
    if least < 2:
        say("rows of single holders were added up too (--min-holders 1): the sum of one is that client's own row")
    elif kept is None:
        say(f"kept local: rows held by fewer than {least} clients")
    else:
        say(f"kept local: {kept} of {summary.shared_rows} rows, held by fewer than {least} clients in every round")
    if disclosed.sums.hides_contributions and least == 2:
        say("of a row of two holders, either can compute the other's from the mean: --min-holders 3 prevents it")
    safe = summary.corrupt_clients + 2
    if disclosed.sums.hides_contributions and 2 <= least < safe:
        say(
            f"but a row of {least} holders may open to the server together with corrupt clients, of whom --max-corrupt "
            f"declares {safe - 2}: --min-holders {safe} hides it"
        )


def _beside_this(summary: Summary, folder: Path) -> list[tuple[str, Summary]]:
    """Runs beside this one on the same data, seed and model, e.g. under another strategy, by name."""
    others = []
    for path in sorted(folder.resolve().parent.glob("*/summary.json")):
        if path.parent == folder.resolve():
            continue
        try:
            other = RunFolder(path.parent).summary()
            if other is not None and comparable(summary, other):
                others.append((path.parent.name, other))
        except UserError:  # somebody else's broken file is not this run's failure
            continue
    return others


def _compare(summary: Summary, others: Sequence[tuple[str, Summary]]) -> None:
    if not others and summary.number_of_clients == 1:
        return
    if not others:
        say(f"to compare: {_beside(summary.settings)} with the same options and another --out beside this one")
        return
    scores = [TITLES.get(name, name) for name in _compared(summary)]
    columns = ("run", "strategy", "sums", "clients", "rounds", *scores, "kB up")
    runs = [*others, ("this run", summary)]
    same = "data, seed and model" if len({one.settings.model for _, one in runs}) == 1 else "data and seed"
    table(f"the same {same}", columns, [_comparison(name, one) for name, one in runs])


def _beside(settings: RecordedSettings) -> str:
    """A command whose run compares with this one."""
    if settings.queries is not None:
        return f"{command('launch.fedcqa')} --strategy {'fedcqa' if settings.strategy != 'fedcqa' else 'fedcqa-local'}"
    if settings.model == "counts" and settings.privacy is not None:
        budget = f"--epsilon {settings.privacy.epsilon:g} --delta {settings.privacy.delta:g}"
        return f"{command('launch.fede')} --strategy all-rows --dp sgd {budget}"
    return command("launch.local" if settings.strategy != "local" else "launch.fedr_secagg")


def _comparison(name: str, run: Summary) -> list[str | int]:
    settings, sent, figures = run.settings, round(run.bytes_up / 1000), run.figures
    scores = [f"{figures[name]:.4f}" if run.told and name in figures else "" for name in _compared(run)]
    how = settings.strategy if settings.privacy is None else f"{settings.strategy}, {settings.privacy.in_brief}"
    return [name, how, settings.aggregation, run.tested, run.rounds, *scores, sent]


def _compared(run: Summary) -> tuple[str, str]:
    """The first and the last figure: MRR and Hits@10 of rankings."""
    return run.scores[0], run.scores[-1]


def _row(figures: Figures, names: tuple[str, ...], bytes_up: int, bytes_down: int) -> list[str | int]:
    scores = [f"{figures[name]:.4f}" if name in figures else "" for name in names]
    return [*scores, round(bytes_up / 1000), round(bytes_down / 1000)]


def _data(settings: RecordedSettings) -> str:
    return "own folders" if settings.client_data else f"{Path(settings.dataset).name} by {settings.by}"
