"""What one client knows, and what it says of it: rows, projections, scores and names; its stored facts beside them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protocols.alignment.interface import Positions
from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved
from protocols.lookups.vectors import Vectors
from protocols.scores.interface import Scores
from protocols.scores.topk.hidden import HiddenTable
from secure_kg.data.graph import TripleArray
from secure_kg.models.queries.encoder import Encoder, State
from secure_kg.models.queries.model import QueryModel
from secure_kg.models.queries.scoring import pairs
from secure_kg.queries.retrieval.facts import StoredFacts, Vocabulary
from secure_kg.queries.retrieval.requests import Numbers, Step
from secure_kg.queries.retrieval.rules import NamePolicy, Rules

_DOMAIN: Final = b"secure-kg/retrieval/table/1"


class Knowledge:
    """`positions`: of the entities, in their order. `averaged`: which of them were averaged; None: not known. `stored`:
    triples that exact answers come from; None: there are none."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        model: QueryModel,
        positions: Positions,
        averaged: npt.NDArray[np.bool_] | None,
        rules: Rules,
        stored: TripleArray | None = None,
    ) -> None:
        self.vocabulary, self.positions, self.rules = vocabulary, positions, rules
        self._model, self._averaged = model, averaged
        self.facts = StoredFacts(vocabulary, positions, rules, stored)
        self._entities = {name: place for place, name in enumerate(vocabulary.entities)}
        self._relations = {name: place for place, name in enumerate(vocabulary.relations)}
        self._order = np.argsort(positions.own)
        anchor = self.encoder.anchor(torch.zeros(1, self.dim))
        self._anchor_shape = anchor.shape[1:]
        self._grows = self.encoder.intersect([anchor, anchor]).shape != anchor.shape
        """Whether intersections have more points than their parts."""

    @property
    def dim(self) -> int:
        return self._model.size.shape.dim

    @property
    def encoder(self) -> Encoder:
        return self._model.encoder()

    @property
    def table(self) -> bytes:
        """Digest of what all clients of a run have alike: the union, and the operators of one and the same round."""
        size, operators = self._model.size, self._model.operators.detach().numpy()
        kind = f"{size.encoder} {size.compares} {size.shape}".encode()
        return digest(_DOMAIN, self.positions.digest, kind, np.ascontiguousarray(operators, dtype="<f4").tobytes())

    @property
    def longest_row(self) -> float:
        return float(self._model.entity.detach().norm(dim=1).max())

    def entity_rows(self, names: Sequence[str], *, for_others: bool) -> Vectors:
        """Of the names that this client holds. `for_others`: and of which its rules let it say so."""
        told = self._told(self.rules.anchors if for_others else "all")
        places = [self._entities.get(name, -1) for name in names]
        places = [place if place >= 0 and told[place] else -1 for place in places]
        known = np.array([place >= 0 for place in places], dtype=np.bool_)
        rows = self._model.entity.detach().numpy()[[place for place in places if place >= 0]]
        return Vectors(known, rows.reshape(-1, self.dim))

    def relation_row(self, relation: str, inverse: bool) -> Numbers:
        """The row of a relation of this client's own, the way there or the way back."""
        place = self._model.size.entities + 2 * self._relations[relation] + inverse
        row: Numbers = self._model.rows.detach().numpy()[place]
        return row

    @torch.no_grad()
    def projected(self, steps: Sequence[Step], width: int, *, for_others: bool) -> Vectors:
        """Where this client knows the relation. `for_others`: and where its rules let it say so."""
        hidden = self.rules.no_atoms if for_others else frozenset[str]()
        mine = [step.relation in self._relations and step.relation not in hidden for step in steps]
        encoder, found = self.encoder, []
        for step in (step for step, own in zip(steps, mine, strict=True) if own):
            row = torch.from_numpy(self.relation_row(step.relation, step.inverse))[None]
            state = encoder.project(self.state(step.point), row, step.of_anchor)
            found.append(flat(state))
        values = np.stack(found) if found else np.zeros((0, width), dtype=np.float32)
        return Vectors(np.array(mine, dtype=np.bool_), _saturated(values))

    def require_width(self, width: int) -> None:
        """`PeerMisbehaved` for points of so many numbers if no state of the encoder has them. Clients have one encoder
        and so refuse alike, whatever they know."""
        shape = self._anchor_shape
        several, rest = divmod(width, self.dim)
        if rest or (several % shape[0] if self._grows else width != shape.numel()):
            raise PeerMisbehaved("a point of another width than this model's")

    def state(self, point: Numbers) -> State:
        """A flat point as the encoder knows it [1, ...]. `PeerMisbehaved` for a width that none of its states has."""
        self.require_width(len(point))
        several = (-1, self.dim) if len(self._anchor_shape) > 1 else (self.dim,)
        return torch.from_numpy(point.copy()).view(1, *several)

    @torch.no_grad()
    def scores(self, points: Numbers) -> Scores:
        """Of every own entity, by the best of the points [k, d]."""
        found = pairs(torch.from_numpy(points)[None], self._model.entity, self._model.size.compares)
        return Scores(self.positions.own[self._order], _saturated(found.numpy()[:, self._order]))

    def hidden_table(self) -> HiddenTable:
        return HiddenTable(self.positions.own[self._order], self._model.entity.detach().numpy()[self._order])

    @property
    def own_names(self) -> dict[int, str]:
        """All of them by position, for the client itself."""
        return dict(zip(self.positions.own.tolist(), self.vocabulary.entities, strict=True))

    def named(self, positions: Sequence[int]) -> dict[int, str]:
        """Names for others, by this client's rule."""
        all_names = self.own_names
        told = set(self.positions.own[self._told(self.rules.names)].tolist())
        return {position: all_names[position] for position in positions if position in told}

    def _told(self, policy: NamePolicy) -> npt.NDArray[np.bool_]:
        """Of which own entities others may hear."""
        everybody = np.full(len(self.vocabulary.entities), policy == "all")
        return everybody if policy != "shared" or self._averaged is None else self._averaged


def _saturated(values: Numbers) -> Numbers:
    """What is not finite as the largest number there is, which is clipped and counted as any other. To refuse it would
    tell others of this client's rows."""
    most = float(np.finfo(np.float32).max)
    finite: Numbers = np.nan_to_num(values, nan=-most, posinf=most, neginf=-most)
    return finite


def flat(state: Tensor) -> Numbers:
    """One state [1, ...] as the numbers of a point."""
    numbers: Numbers = state.detach().reshape(-1).numpy().astype(np.float32)
    return numbers
