"""Finished runs side by side: settings that differ, results, costs, dropouts and disclosures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from protocols.foundation.disclosure import NOTHING
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.report.charts import SERIES_COLOURS
from secure_kg.runs.next_step import resume_command
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder, read_config

MOST_RUNS: Final = SERIES_COLOURS
"""As many as a chart can tell apart."""
_OF_THE_TEST: Final = ("dataset", "by", "client_data", "clients", "seed")
"""Runs that differ in these were tested on other triples, or trained on other ones."""
_LEFT_OUT: Final = ("blocks", "format", "model")
"""What follows from other settings."""
_NOT_SHARED: Final = "triples and rows that are not shared"
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A finished run and its name among the others."""

    name: str
    path: Path
    summary: Summary
    evaluations: tuple[Evaluation, ...]

    @property
    def how(self) -> str:
        """Strategy and sums, in a few words."""
        settings = self.summary.settings
        private = "" if settings.privacy is None else f", {settings.privacy.in_brief}"
        sums = "" if STRATEGIES[settings.strategy].pools else f", {settings.aggregation} sums"
        return f"{STRATEGIES[settings.strategy].title}{sums}{private}"

    @property
    def bytes_by_phase(self) -> dict[str, tuple[int, int]]:
        """Up and down: set-up, rounds with their evaluations, and what comes after the last evaluation."""
        summary, total = self.summary, (self.summary.bytes_up, self.summary.bytes_down)
        if self.pools:  # nothing is sent
            return dict.fromkeys(("set-up", "rounds", "results"), (0, 0))
        setup = summary.setup.bytes_up, summary.setup.bytes_down
        told = [one for one in self.evaluations if one.bytes_up is not None and one.bytes_down is not None]
        last = (told[-1].bytes_up or 0, told[-1].bytes_down or 0) if told else total
        rounds = max(last[0] - setup[0], 0), max(last[1] - setup[1], 0)
        rest = max(total[0] - setup[0] - rounds[0], 0), max(total[1] - setup[1] - rounds[1], 0)
        return {"set-up": setup, "rounds": rounds, "results": rest}

    @property
    def disclosed(self) -> dict[str, tuple[str, str]]:
        """By subject: what the server learned, and what another client learned."""
        settings = self.summary.settings
        if self.pools:
            return {_NOT_SHARED: ("everything: whoever ran this read all triples", "")}
        statements = Disclosed.of_summary(settings).statements()
        told = {_subject(one.subject.value): (one.server, one.client) for one in statements}
        return told | {_NOT_SHARED: (NOTHING, NOTHING)}

    @property
    def pools(self) -> bool:
        """Whether all triples were in one place."""
        return STRATEGIES[self.summary.settings.strategy].pools

    def learned(self, subject: str) -> tuple[str, str]:
        """What the server learned about a subject, and what another client learned; empty: there was nothing to."""
        return self.disclosed.get(subject, ("everything" if self.pools else "", ""))

    def curve(self, part: str, figure: str | None = None) -> list[tuple[float, float]]:
        """Points by round of a figure that evaluations have; none where only clients could read it."""
        points = []
        for line in self.evaluations:
            found = line.figures.get(part)
            value = found.get(figure) if isinstance(found, dict) and figure is not None else found
            if isinstance(value, int | float):
                points.append((float(line.round), float(value)))
        return points


def open_runs(paths: Sequence[Path]) -> list[ComparedRun]:
    """The runs in these folders. `UserError` in one line for a folder that holds no finished run."""
    if len(paths) < 2:
        raise UserError("give the folders of two runs or more; the page of a single one is its report.html")
    if len(paths) > MOST_RUNS:
        raise UserError(f"{len(paths)} runs: at most {MOST_RUNS} can be told apart in a chart")
    whole = [path.resolve() for path in paths]
    if twice := next((path for path, found in zip(paths, whole, strict=True) if whole.count(found) > 1), None):
        raise UserError(f"{twice}: is given twice")
    names = _names(whole)
    return [_opened(path, name) for path, name in zip(paths, names, strict=True)]


def _opened(path: Path, name: str) -> ComparedRun:
    if (path / "fusion.json").is_file():
        raise UserError(f"{path}: a fusion of two runs, which has its own table: {command('launch.fuse')} shows it")
    config = read_config(path)  # says what is wrong with a folder of something else
    folder = RunFolder(path)
    if (summary := folder.summary()) is None:
        resume = resume_command(path, config.strategy)
        raise UserError(f"{path}: the run has not come to its end; {resume} continues it, if no job is running there")
    _ = summary.settings, summary.statement  # both refuse what cannot be told
    return ComparedRun(name, path, summary, tuple(folder.all_metrics()))


def _names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many parts as tell them apart."""
    for parts in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return list(map(str, paths))


def differing(runs: Sequence[ComparedRun]) -> dict[str, list[Value]]:
    """Settings that are not the same in all runs, by name; a setting that a run does not have is None.

    Of settings that only some runs have, as those of differential privacy, these runs are compared with each other.
    """
    flat = [_flat(run.summary.config) | _told_apart(run) for run in runs]
    names = dict.fromkeys(name for one in flat for name in one)
    found = {name: [one.get(name) for one in flat] for name in names}
    of_some = {name for name in names if "." in name}
    return {
        name: values
        for name, values in found.items()
        if len({(type(value), value) for value in values if value is not None or name not in of_some}) > 1
    }


def _told_apart(run: ComparedRun) -> dict[str, Value]:
    """What stands for all settings of a kind that other runs do not have."""
    settings = run.summary.settings
    private = settings.privacy
    told = None if private is None else f"{private.in_brief}, epsilon {private.epsilon:g}, delta {private.delta:g}"
    return {"model": settings.model, "differential privacy": told}


def _flat(config: Mapping[str, Any], before: str = "") -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{name}.")
        elif name not in _LEFT_OUT:
            found[before + name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return found


def warnings(runs: Sequence[ComparedRun]) -> list[str]:
    """Why figures of these runs do not compare; none if they do."""
    told, different = [], differing(runs)
    if names := [name for name in _OF_THE_TEST if name in different]:
        told.append(f"The runs differ in {', '.join(names)}: their results are on other test triples.")
    if len({run.summary.examples for run in runs}) > 1:
        told.append("Some results are over triples and some over queries: these are different tasks.")
    partly = [run.name for run in runs if run.summary.test_clients != run.summary.number_of_clients]
    if sealed := [run.name for run in runs if not run.summary.told]:
        reasons = {run.name: run.summary.untold for run in runs if not run.summary.told}
        told += [
            f"{', '.join(name for name in sealed if reasons[name] == reason)}: {reason}."
            for reason in dict.fromkeys(reasons.values())
        ]
    if partly := [name for name in partly if name not in sealed]:
        told.append(f"Not all clients are in the results of {', '.join(partly)}.")
    if leaky := [run.name for run in runs if run.summary.leaks]:
        told.append(f"Test triples were trained on in {', '.join(leaky)}: such figures are too good.")
    return told


def subjects(runs: Sequence[ComparedRun]) -> list[str]:
    """What anybody learned about, in the order of the disclosures."""
    return list(dict.fromkeys(subject for run in runs for subject in run.disclosed))


def _subject(words: str) -> str:
    """The same words for all runs: figures of a run do not stand in them."""
    return words.replace("{shared} ", "shared ").replace("{shared}", "shared").replace("{least}", "N")


def record(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """For `--json`."""
    different = differing(runs)
    return {
        "warnings": warnings(runs),
        "settings_that_differ": different,
        "runs": [_record(run, {name: values[number] for name, values in different.items()})
                 for number, run in enumerate(runs)],
    }  # fmt: skip


def _record(run: ComparedRun, settings: Mapping[str, Value]) -> dict[str, Any]:
    summary = run.summary
    return {
        "name": run.name,
        "path": str(run.path),
        "strategy": summary.settings.strategy,
        "aggregation": summary.settings.aggregation,
        "model": summary.settings.model,
        "settings": dict(settings),
        "test": summary.figures,
        "untold": None if summary.told else summary.untold,
        "examples": summary.examples,
        "number_of_examples": summary.number_of_examples,
        "clients": summary.number_of_clients,
        "test_clients": summary.test_clients,
        "rounds": summary.rounds,
        "best_round": summary.best_round,
        "valid_mrr": summary.valid_mrr,
        "curve": run.curve("valid", summary.scores[0]),
        "seconds_total": summary.seconds_total,
        "seconds": summary.seconds,
        "cpu_seconds": summary.cpu_seconds,
        "bytes": {phase: {"up": up, "down": down} for phase, (up, down) in run.bytes_by_phase.items()},
        "bytes_up": summary.bytes_up,
        "bytes_down": summary.bytes_down,
        "dropouts": [one.to_json() for one in summary.dropouts],
        "abandoned_sums": [one.to_json() for one in summary.abandoned_sums],
        "disclosed": {about: {"server": server, "client": client} for about, (server, client) in run.disclosed.items()},
        "privacy": None if (statement := summary.statement) is None else statement.lines(),
    }
