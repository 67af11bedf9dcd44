"""Questions over all graphs of a run, asked in one process."""

from dataclasses import dataclass
from pathlib import Path

from secure_kg.foundation.console import table_text
from secure_kg.foundation.errors import UserError
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.language.writing import to_text
from secure_kg.queries.naming import name_shown
from secure_kg.queries.retrieval.asking import Found
from secure_kg.queries.retrieval.learned import who_learns_what
from secure_kg.queries.retrieval.members import ask_in_process
from secure_kg.queries.retrieval.over_run import AskSettings, RunAsked
from secure_kg.queries.retrieval.parts import Outcome, Session
from secure_kg.report.html import tag
from secure_kg.report.in_notebooks import plain_table
from secure_kg.report.picture import Panel, Picture, picture
from secure_kg.report.query_picture import bare_query_picture

_ROW = 26.0


@dataclass(frozen=True, slots=True, repr=False)
class Answers:
    """Answers to one question, the best first."""

    query: NamedQuery
    found: tuple[Found, ...]
    contributors: tuple[int, ...]
    """Whose scores are in it, the asker's aside."""
    learned: tuple[str, ...]
    """What each party learned of the question, a line each."""
    bytes: int
    """That the asker sent and received."""

    @property
    def names(self) -> list[str | None]:
        """Of the answers; None where no client named one."""
        return [one.name for one in self.found]

    def picture(self) -> Picture:
        """The question as a graph, and its answers beside it."""
        drawing, (width, height) = bare_query_picture(self.query)
        drawing = tag("g", drawing, class_="query")
        lines = [
            tag("text", f"{rank}. {name_shown(one.name)}", class_="caption", x="0", y=f"{_ROW * rank:g}")
            for rank, one in enumerate(self.found, start=1)
        ]
        answers = tag("svg", *lines, viewBox=f"0 0 300 {_ROW * (len(lines) + 1):g}")
        panels = [
            Panel("The question", drawing, width, height),
            Panel("Answers, the best first", answers, 300.0, _ROW * (len(lines) + 1)),
        ]
        told = "\n".join(f"{line[:1].upper()}{line[1:]}." for line in self.learned)
        return picture("One question over all graphs", panels, told)

    def __repr__(self) -> str:
        return f"{to_text(self.query)}\n{table_text('', ('rank', 'answer'), self._rows())}"

    def _repr_html_(self) -> str:
        return tag("div", tag("code", to_text(self.query)), plain_table(("rank", "answer"), self._rows()))

    def _rows(self) -> list[list[str | int]]:
        return [[rank, name_shown(one.name)] for rank, one in enumerate(self.found, start=1)]


def ask(run: Path, question: str, *, client: int, top: int, hide_query: bool) -> Answers:
    """`UserError` in one line for a question that came to nothing."""
    query = read_question(question)
    settings = AskSettings(client=client, top=top, hide_query=hide_query)
    view, session = ask_in_process(RunAsked(run, settings), [query])
    outcome = session.outcomes[0] if session.outcomes else Outcome(None, _problem(session))
    if outcome.retrieved is None:
        raise UserError(f"the question came to nothing: {outcome.problem}")
    learned = tuple(one.line() for one in who_learns_what(view.public, False, session.asked))
    retrieved, spent = outcome.retrieved, session.traffic.get(view.public.asker, 0)
    return Answers(query, retrieved.answers, retrieved.contributors, learned, spent)


def _problem(session: Session) -> str:
    return str(next(iter(session.problems.values()), "the session has ended"))
