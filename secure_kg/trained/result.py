"""The result of a run for people who work in Python: figures, curve, bytes, disclosures and a picture of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secure_kg.federation.plan.disclosed import Disclosed, Statement
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.console import table_text
from secure_kg.foundation.errors import UserError
from secure_kg.report.charts import bare_columns, line_chart
from secure_kg.report.html import megabytes, tag
from secure_kg.report.in_notebooks import plain_table
from secure_kg.report.picture import Panel, Picture, picture
from secure_kg.report.rounds import between_evaluations
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.summary import TITLES, Summary, shown
from secure_kg.runs.run_folder import RunFolder
from secure_kg.trained.run import TrainedRun

if TYPE_CHECKING:
    from secure_kg.trained.asking import Answers
    from secure_kg.trained.auditing import AuditOutcome
    from secure_kg.trained.client_model import ClientModel


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes on the wire. `up`: from clients to the server, of all of them; the dictionaries have each client's."""

    up: int
    down: int
    up_by_client: dict[int, int]
    down_by_client: dict[int, int]


@dataclass(frozen=True, slots=True, repr=False)
class Disclosures(Sequence[Statement]):
    """Who learns what in a run, subject by subject, in the words of its protocols."""

    statements: tuple[Statement, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.statements[place]

    def __len__(self) -> int:
        return len(self.statements)

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def _rows(self) -> list[list[str]]:
        return [[one.heading, one.server, one.client] for one in self.statements]

    def __repr__(self) -> str:
        return table_text("", _LEARNED, self._rows())

    def _repr_html_(self) -> str:
        return plain_table(_LEARNED, self._rows())


_LEARNED = ("about", "the server learns", "another client learns")


class RunResult:
    """What a finished run has come to, and its clients' models."""

    def __init__(self, run: TrainedRun) -> None:
        if run.summary is None:
            raise UserError(f"{run.path}: has no summary here: the run is not complete, or its server's part elsewhere")
        self.run, self.summary = run, run.summary

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.run.path

    @property
    def metrics(self) -> dict[str, Any]:
        """Test results over all clients: `mrr`, `hits@1`, `hits@3`, `hits@10` and more.

        Where only clients can read them: the means over the clients whose results lie here. Empty where none do, and
        for a private run whose evaluation triples are private.
        """
        if self.summary.told:
            return dict(self.summary.figures)
        return _mean_of_clients(self.summary)

    @property
    def curve(self) -> list[tuple[int, float]]:
        """Validation MRR by round, one point for each evaluation."""
        read = [line for line in self._evaluations() if "valid" in line.figures]
        return [(line.round, float(line.figures["valid"][self._score])) for line in read]

    @property
    def bytes(self) -> Traffic:
        """What all parties have sent, set-up included."""
        told = self.summary
        each = ({int(key): size for key, size in found.items()} for found in _per_client(told))
        return Traffic(told.bytes_up, told.bytes_down, *each)

    @property
    def disclosures(self) -> Disclosures:
        """Who learns what."""
        settings = self.summary.settings
        if STRATEGIES[settings.strategy].pools:
            raise UserError(f"strategy {settings.strategy} has no protocol: whoever runs it reads all triples")
        return Disclosures(tuple(Disclosed.of_summary(settings).statements()))

    def client(self, number: int) -> "ClientModel":
        """The trained model of a client, which answers by name."""
        return self.run.client(number)

    def ask(self, question: str, *, client: int = 1, top: int = 10, hide_query: bool = False) -> "Answers":
        """A question over all graphs, of a run that was trained on queries."""
        return self.run.ask(question, client=client, top=top, hide_query=hide_query)

    def audit(self, *, attacks: bool = True) -> "AuditOutcome":
        """What the server really observed."""
        return self.run.audit(attacks=attacks)

    def plot(self) -> Picture:
        """The way to the result, and what it cost on the wire."""
        name = TITLES.get(self._score, self._score)
        if self.curve:
            kept = f"validation {name} by round; dashed: the round kept"
            line = line_chart(self.curve, "round", f"validation {name}", self.summary.best_round)
            return picture(self.title, [Panel(kept, line), *self._bytes_panel()], self._in_a_line())
        told = [one for one in self.summary.clients if self._score in one.figures]
        columns = [(str(one.client), [float(one.figures[self._score])]) for one in told]
        panels = [Panel(f"test {name} of each client", bare_columns(columns, [name], "", "client"))] if told else []
        return picture(self.title, [*panels, *self._bytes_panel()], self._in_a_line())

    def _bytes_panel(self) -> list[Panel]:
        columns = between_evaluations(self._evaluations(), self.summary.setup)
        names, unit = ("from clients", "to clients"), "MB"
        if not columns:
            up, down = _per_client(self.summary)
            columns = [(key, (up[key] / 1e6, down[key] / 1e6)) for key in up]
            if not columns:
                return []
            chart = bare_columns(columns, names, unit, "client")
            return [Panel("MB of each client, set-up included", chart, names=names)]
        chart = bare_columns(columns, names, unit, "round")
        return [Panel("MB a round, all clients together", chart, names=names)]

    @property
    def title(self) -> str:
        """The run in a line."""
        settings, clients = self.summary.settings, self.summary.number_of_clients
        data = "own data" if settings.client_data else f"{Path(settings.dataset).name} by {settings.by}"
        strategy = STRATEGIES[settings.strategy]
        how = "all triples in one place" if strategy.pools else f"{settings.aggregation} sums"
        private = "" if settings.privacy is None else f", {settings.privacy.in_brief}"
        return f"{strategy.title} on {data}, {settings.model}, {clients} clients, {how}{private}"

    def __repr__(self) -> str:
        return table_text(self.title, *self._table()) + "\n" + self._in_a_line()

    def _repr_html_(self) -> str:
        return tag("div", plain_table(*self._table(), caption=self.title), tag("p", self._in_a_line()))

    def _table(self) -> tuple[list[str], list[list[str | int]]]:
        names = shown(self.metrics)
        rows: list[list[str | int]] = [
            [f"client {one.client}", one.examples or "", *_scores(one.figures, names), *self._kilobytes(one.client)]
            for one in self.summary.clients
        ]
        examples = sum(one.examples for one in self.summary.clients)
        sizes = round(self.summary.bytes_up / 1000), round(self.summary.bytes_down / 1000)
        rows.append(["all", examples or "", *_scores(self.metrics, names), *sizes])
        return ["test", self.summary.examples, *(TITLES.get(name, name) for name in names), "kB up", "kB down"], rows

    def _kilobytes(self, client: int) -> tuple[int, int]:
        up, down = _per_client(self.summary)
        return round(up.get(str(client), 0) / 1000), round(down.get(str(client), 0) / 1000)

    def _in_a_line(self) -> str:
        told, name = self.summary, TITLES.get(self._score, self._score)
        kept = f"best {told.best_round}" if told.best_round else "the last one kept"
        sent = f"{megabytes(told.bytes_up)} from clients, {megabytes(told.bytes_down)} to them"
        found = self.metrics.get(self._score)
        test = told.untold if found is None else f"test {name} {found:.4f}"
        return f"{test}; rounds {told.rounds}, {kept}; {sent}"

    @property
    def _score(self) -> str:
        return shown(self.metrics)[0]

    def _evaluations(self) -> list[Evaluation]:
        return RunFolder(self.path).all_metrics()


def _scores(figures: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [f"{figures[name]:.4f}" if figures.get(name) is not None else "" for name in names]


def _per_client(summary: Summary) -> tuple[dict[str, int], dict[str, int]]:
    return summary.bytes_up_per_client, summary.bytes_down_per_client


def _mean_of_clients(summary: Summary) -> dict[str, Any]:
    total = sum(one.examples for one in summary.clients)
    names = [name for name in shown(summary.figures) if all(name in one.figures for one in summary.clients)]
    if not total:
        return {}
    return {name: sum(one.figures[name] * one.examples for one in summary.clients) / total for name in names}
