"""A client's trained model, asked by names. It answers from the client's own folder and sends nothing to anybody."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import torch

from secure_kg.data.graph import ClientGraph, Part, Side, TripleArray
from secure_kg.data.prefixes import Shortener
from secure_kg.data.triples import PARTS
from secure_kg.foundation.errors import UserError
from secure_kg.learning.device import to_device
from secure_kg.queries.naming import UnknownName, nearest_names
from secure_kg.runs.records.client_result import ClientResult
from secure_kg.trained.results import KNOWN, Kind, KnownAnswers, Prediction, Predictions, TripleScore
from secure_kg.trained.scorers import Scorer

Ids = tuple[int, int, int]
Scores = npt.NDArray[np.float64]
_BLOCK: Final = 256
"""Triples that are scored at a time: relations of RESCAL are matrices, and each triple has a copy of its own."""


class NameNotKnown(UserError):
    """A name that the client's graph lacks. The line quotes it and the nearest known ones: it is for the client alone,
    who owns them, and no server hears it."""


class ClientModel:
    """The model of one client on its own graph."""

    def __init__(self, number: int, graph: ClientGraph, scorer: Scorer, recorded: ClientResult | None = None) -> None:
        """`recorded`: what the client wrote about this model at the end of its run."""
        self.number, self.graph, self.scorer, self.recorded = number, graph, scorer, recorded

    def __repr__(self) -> str:  # sizes only, as that of a graph
        sizes = f"{len(self.graph.entities)} entities, {len(self.graph.relations)} relations"
        return f"ClientModel(client {self.number}, {self.scorer.name}, {sizes})"

    def predict_tails(self, head: str, relation: str, top: int = 10, known: KnownAnswers = "leave out") -> Predictions:
        """Entities that `relation` may lead to from `head`."""
        ids = self.entity(head), self.relation(relation), 0
        return self._answers("tail", ids, (head, relation, None), top, known)

    def predict_heads(self, relation: str, tail: str, top: int = 10, known: KnownAnswers = "leave out") -> Predictions:
        """Entities that `relation` may lead from to `tail`."""
        ids = 0, self.relation(relation), self.entity(tail)
        return self._answers("head", ids, (None, relation, tail), top, known)

    def predict_relations(self, head: str, tail: str, top: int = 10, known: KnownAnswers = "leave out") -> Predictions:
        """Relations that may lead from `head` to `tail`. Training compares entities and never relations with each
        other, so their order says less than that of entities."""
        ids = self.entity(head), 0, self.entity(tail)
        return self._answers("relation", ids, (head, None, tail), top, known)

    @torch.no_grad()
    def score(self, head: str, relation: str, tail: str) -> TripleScore:
        """The score of one triple, and its filtered ranks."""
        ids = self.entity(head), self.relation(relation), self.entity(tail)
        value = float(_finite(self._of_triples(np.array([ids]), "tail"))[0])
        places = self._places("relation", ids)
        return TripleScore(
            head,
            relation,
            tail,
            value,
            float(self._quantiles(np.array([value]), "tail")[0]),
            self._rank(ids, "tail"),
            self._rank(ids, "head"),
            len(self.graph.entities),
            places.get(ids[1]),
        )

    @torch.no_grad()
    def similar_entities(self, name: str, top: int = 10) -> Predictions:
        """Entities whose rows are nearest to that of `name`: by the model's own distance where it has one, else by the
        cosine."""
        _require_top(top)
        own = self.entity(name)
        likeness = _finite(self.scorer.like(own))
        order = [number for number in np.argsort(-likeness, kind="stable").tolist() if number != own]
        answers = [
            Prediction(rank, self.graph.entities[number], float(likeness[number]), None)
            for rank, number in enumerate(order[:top], start=1)
        ]
        return Predictions("similar entity", (name, None, None), answers, len(order), 0, self.scorer.likeness)

    def entity(self, name: str) -> int:
        """The id of an entity. `NameNotKnown` if the graph has none of that name."""
        return self._id("entity", name, self._entity_ids, self.graph.entities)

    def relation(self, name: str) -> int:
        """The id of a relation, likewise."""
        return self._id("relation", name, self._relation_ids, self.graph.relations)

    def _id(
        self, kind: Literal["entity", "relation"], name: str, ids: Mapping[str, int], names: tuple[str, ...]
    ) -> int:
        """Of a full name, or of one that is shortened by a prefix of the client's own, as tables show it."""
        if name not in ids and (full := self._shortener.full(str(name))) in ids:
            return ids[full]
        if name not in ids:
            raise NameNotKnown(UnknownName(kind, str(name), nearest_names(str(name), names)).warning())
        return ids[name]

    @cached_property
    def _shortener(self) -> Shortener:
        return Shortener(self.graph.prefixes)

    @cached_property
    def _entity_ids(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.graph.entities)}

    @cached_property
    def _relation_ids(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.graph.relations)}

    @torch.no_grad()
    def _answers(
        self,
        kind: Literal["tail", "head", "relation"],
        ids: Ids,
        question: tuple[str | None, str | None, str | None],
        top: int,
        known: KnownAnswers,
    ) -> Predictions:
        _require_top(top)
        if known not in KNOWN:
            raise UserError(f"known answers: one of {', '.join(KNOWN)}")
        side: Side = "head" if kind == "head" else "tail"
        if kind == "relation":
            scores = _finite(self._of_triples(self._every_relation(ids), side))
        else:
            scores = _finite(self.scorer.scores(self._there([ids]), side)[0])
        places = self._places(kind, ids)
        names = self.graph.relations if kind == "relation" else self.graph.entities
        order = np.argsort(-scores, kind="stable")  # names are sorted, so ties stand in their order
        if known == "leave out":
            order = order[~np.isin(order, list(places))]
        chosen = order[:top].tolist()
        quantiles = self._quantiles(scores[chosen], side)
        answers = [
            Prediction(
                rank,
                names[number],
                float(scores[number]),
                float(quantile),
                places.get(number) if known == "mark" else None,
            )
            for rank, (number, quantile) in enumerate(zip(chosen, quantiles, strict=True), start=1)
        ]
        return Predictions(kind, question, answers, len(order), len(names) - len(order))

    def _every_relation(self, ids: Ids) -> TripleArray:
        triples = np.tile(np.array(ids, dtype=np.int64), (len(self.graph.relations), 1))
        triples[:, 1] = np.arange(len(triples))
        return triples

    def _places(self, kind: Kind, ids: Ids) -> dict[int, Part]:
        """The known answers, each with the first part of the graph that has it."""
        asked = {"head": 0, "relation": 1, "tail": 2}[kind]
        given = [column for column in range(3) if column != asked]
        found: dict[int, Part] = {}
        for part in PARTS:
            triples = self.graph.part(part)
            same = (triples[:, given] == np.array(ids)[given]).all(1)
            for number in triples[same, asked].tolist():
                found.setdefault(number, part)
        return found

    def _rank(self, ids: Ids, side: Side) -> float:
        scores = _finite(self.scorer.scores(self._there([ids]), side)[0])
        own = ids[2 if side == "tail" else 0]
        others = np.ones(len(scores), dtype=bool)
        others[[*self._places(side, ids), own]] = False
        better, equal = (int(found[others].sum()) for found in (scores > scores[own], scores == scores[own]))
        return 1 + better + equal / 2

    def _there(self, triples: npt.ArrayLike) -> torch.Tensor:
        """Triples [b, 3] where the model is."""
        return to_device(np.asarray(triples, dtype=np.int64), self.scorer.device)

    def _of_triples(self, triples: TripleArray, side: Side) -> torch.Tensor:
        blocks = torch.split(self._there(triples), _BLOCK)
        return torch.cat([self.scorer.of_triples(block, side) for block in blocks])

    def _quantiles(self, scores: Scores, side: Side) -> Scores:
        """Shares of the client's validation triples that score lower, on the same side."""
        if side not in self._validation:
            self._validation[side] = np.sort(_finite(self._of_triples(self.graph.valid, side)))
        sorted_scores = self._validation[side]
        shares: Scores = np.searchsorted(sorted_scores, scores, side="left") / len(sorted_scores)
        return shares

    @cached_property
    def _validation(self) -> dict[Side, Scores]:
        return {}


def _finite(scores: torch.Tensor) -> Scores:
    found: Scores = scores.double().cpu().numpy()
    if not np.isfinite(found).all():
        raise UserError("the model gives scores that are no numbers: its rows are too large")
    return found


def _require_top(top: int) -> None:
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise UserError("how many answers: a whole number from 1 on")
