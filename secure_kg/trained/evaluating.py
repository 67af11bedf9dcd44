"""Filtered metrics of a client's model on any triples, by the same ranking as at the end of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from secure_kg.data.graph import TripleArray
from secure_kg.data.readers.interface import FileRules
from secure_kg.data.triples import NamedTriples, read_triples
from secure_kg.data.vocabulary import triple_keys
from secure_kg.evaluation.metric_names import named_metrics
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import require_regular
from secure_kg.trained.client_model import ClientModel


@dataclass(frozen=True, slots=True)
class TestSet:
    """Triples to rank, in ids of the client's graph, and what of a file has none."""

    __test__ = False  # pytest takes the name for one of its own

    triples: TripleArray
    given: int
    """How many there were."""
    unknown_entities: int = 0
    """Different names of entities that the client's graph lacks."""
    unknown_relations: int = 0

    @property
    def not_ranked(self) -> int:
        """Triples with a name that the client's graph lacks: its model has no row for it."""
        return self.given - len(self.triples)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Ranks of a test set, and what may make them look better than they are."""

    tested: TestSet
    tail: RankingSums
    both: RankingSums
    in_train: int
    """Ranked triples that the client has trained on."""
    in_valid: int
    """Ranked triples that have chosen the best round."""
    repeated: int
    recorded_mrr: float | None = None
    """Of the client's own test part: what it wrote down at the end of its run; None for other triples."""

    @property
    def mrr_of_all(self) -> float:
        """Tail side, with every triple that could not be ranked as one that was not found."""
        return self.tail.reciprocal / self.tested.given

    @property
    def as_recorded(self) -> bool | None:
        """Whether the MRR is that of `result.json`, as far as rounding on another machine goes."""
        if self.recorded_mrr is None:
            return None
        return abs(self.tail.metrics()["mrr"] - self.recorded_mrr) < 1e-4

    def to_json(self) -> dict[str, Any]:
        figures = {**self.tail.metrics(), "both_sides": self.both.metrics()}
        return {
            "triples": self.tested.given,
            "ranked": len(self.tested.triples),
            "unknown_entities": self.tested.unknown_entities,
            "unknown_relations": self.tested.unknown_relations,
            "trained_on": self.in_train,
            "in_valid": self.in_valid,
            "repeated": self.repeated,
            "mrr_of_all": self.mrr_of_all,
            "recorded_mrr": self.recorded_mrr,
            "metrics": named_metrics(figures),
        }


def evaluate(
    model: ClientModel,
    test: Path | None = None,
    rules: FileRules = FileRules(label="file"),  # noqa: B008  # frozen
) -> Evaluated:
    """Ranks of the triples in a file; without one, of the client's own test part.

    All that the client knows and all that is tested are left out of the candidates, as at the end of a run.
    """
    graph = model.graph
    tested = TestSet(graph.test, len(graph.test)) if test is None else _read(model, test, rules)
    if len(tested.triples) == 0:
        raise UserError(f"{test}: no triple of it has names of the client's graph alone; nothing to rank")
    known = replace(graph, test=np.concatenate((graph.test, tested.triples)))
    ranking = FilteredRanking(known, model.scorer.device)
    tail = ranking.rank(model.scorer.ranked, tested.triples, "tail")
    sizes = len(graph.entities), len(graph.relations)
    keys = triple_keys(tested.triples, *sizes)
    in_train, in_valid = (int(np.isin(keys, triple_keys(part, *sizes)).sum()) for part in (graph.train, graph.valid))
    return Evaluated(
        tested,
        tail,
        tail + ranking.rank(model.scorer.ranked, tested.triples, "head"),
        in_train,
        in_valid,
        len(keys) - len(np.unique(keys)),
        _recorded_mrr(model) if test is None else None,
    )


def _read(model: ClientModel, path: Path, rules: FileRules) -> TestSet:
    require_regular(path)
    named = read_triples(path, rules)
    if len(named) == 0:
        raise UserError(f"{path}: has no triples")
    return in_ids(model, named)


def in_ids(model: ClientModel, named: NamedTriples) -> TestSet:
    """Triples by name in the ids of the client's graph; those with a name that it lacks are counted."""
    entity = {name: number for number, name in enumerate(model.graph.entities)}
    relation = {name: number for number, name in enumerate(model.graph.relations)}
    columns = _column(named.heads, entity), _column(named.relations, relation), _column(named.tails, entity)
    triples = np.column_stack(columns)
    return TestSet(
        triples[(triples >= 0).all(1)],
        len(named),
        len({*named.heads, *named.tails} - entity.keys()),
        len({*named.relations} - relation.keys()),
    )


def _column(names: tuple[str, ...], ids: Mapping[str, int]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.fromiter((ids.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def _recorded_mrr(model: ClientModel) -> float | None:
    """Of a run on triples: an encoder's results are of queries."""
    figures = {} if model.recorded is None else model.recorded.figures
    found = figures.get("mrr")
    return float(found) if isinstance(found, int | float) and "both_sides" in figures else None
