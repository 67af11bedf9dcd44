"""Results of predictions by name: typed, shown as tables, given as lists.

Scores are the model's own. They order candidates of one question, and are not comparable between models: another
model, or the same one trained longer, has another scale. What can be said of a score by itself is where it stands among
those of the client's validation triples, which are true and were not trained on: the share that scores lower. That is
an empirical quantile, and not a probability that the triple is true.

Names come from files that anybody may have written. What is shown (`repr`) steers no terminal; `to_list` has them as
they are.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, overload

from secure_kg.data.graph import Part
from secure_kg.foundation.console import table_text
from secure_kg.foundation.visible import visible_line
from secure_kg.foundation.words import counted
from secure_kg.queries.naming import ascii_quoted

KnownAnswers = Literal["leave out", "mark", "keep"]
"""What becomes of answers that the client's own triples have already: leave them out, show them with the part that has
them, or show them like all others."""
KNOWN: Final[tuple[KnownAnswers, ...]] = ("leave out", "mark", "keep")
Kind = Literal["tail", "head", "relation", "similar entity"]
_PLURALS: Final = {
    "tail": "tails",
    "head": "heads",
    "relation": "relations",
    "similar entity": "similar entities",
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer."""

    rank: int
    """Its place among the answers, from 1."""
    name: str
    score: float
    validation_quantile: float | None
    """The share of the client's validation triples that score lower; None where nothing is scored as a triple."""
    known: Part | None = None
    """The part of the client's graph that has the triple, if known answers are marked."""


class Predictions(Sequence[Prediction]):
    """Answers to one question, the best first."""

    __slots__ = ("_answers", "candidates", "kind", "left_out", "measure", "question")

    def __init__(
        self,
        kind: Kind,
        question: tuple[str | None, str | None, str | None],
        answers: Sequence[Prediction],
        candidates: int,
        left_out: int = 0,
        measure: str = "score",
    ) -> None:
        """`question`: head, relation and tail, None for what was asked for. `candidates`: without those left out."""
        self.kind: Kind = kind
        self.question, self.candidates, self.left_out, self.measure = question, candidates, left_out, measure
        self._answers = tuple(answers)

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, place: int) -> Prediction: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Prediction]: ...

    def __getitem__(self, place: int | slice) -> Prediction | Sequence[Prediction]:
        return self._answers[place]

    @property
    def title(self) -> str:
        """What was asked, in a line."""
        if self.kind == "similar entity":
            asked = f"similar to {ascii_quoted(self.question[0] or '')}"
        else:
            asked = ", ".join("?" if name is None else ascii_quoted(name) for name in self.question)
        known = f"; {counted(self.left_out, 'known answer')} left out" if self.left_out else ""
        return f"{asked}: {len(self)} of {self.candidates} {_PLURALS[self.kind]}{known}"

    def table(self) -> tuple[tuple[str, ...], list[list[str | int]]]:
        """Columns and rows, as people read them."""
        quantiles = any(one.validation_quantile is not None for one in self)
        marks = any(one.known is not None for one in self)
        columns = ("rank", self.kind, self.measure, *(["above valid"] if quantiles else []))
        rows: list[list[str | int]] = [
            [
                one.rank,
                one.name,
                f"{one.score:.4f}",
                *([f"{one.validation_quantile:.3f}"] if one.validation_quantile is not None else []),
                *([one.known or ""] if marks else []),
            ]
            for one in self
        ]
        return (*columns, *(["known"] if marks else [])), rows

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values, one dictionary for each answer."""
        return [asdict(one) for one in self]

    def __repr__(self) -> str:
        return f"{visible_line(self.title)}\n{table_text('', *self.table())}"


@dataclass(frozen=True, slots=True, repr=False)
class TripleScore:
    """One triple, scored."""

    head: str
    relation: str
    tail: str
    score: float
    validation_quantile: float
    """The share of the client's validation triples that score lower."""
    tail_rank: float
    """Among all entities as tails, other known answers left out; ties share the mean of their ranks."""
    head_rank: float
    """Likewise among heads."""
    entities: int
    """How many there are."""
    known: Part | None
    """The part of the client's graph that has the triple."""

    @property
    def title(self) -> str:
        return ", ".join(map(ascii_quoted, (self.head, self.relation, self.tail)))

    def table(self) -> tuple[tuple[str, ...], list[list[str | int]]]:
        """Columns and one row, as people read them."""
        columns = ("score", "above valid", "rank as tail", "rank as head", "entities", "known")
        ranks = f"{self.tail_rank:g}", f"{self.head_rank:g}"
        return columns, [
            [f"{self.score:.4f}", f"{self.validation_quantile:.3f}", *ranks, self.entities, self.known or ""]
        ]

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values, as of `Predictions`."""
        return [asdict(self)]

    def __repr__(self) -> str:
        return f"{visible_line(self.title)}\n{table_text('', *self.table())}"
