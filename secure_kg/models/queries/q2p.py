"""Query2Particles: a set is several points, its particles.

Reference: Bai et al., "Query2Particles: Knowledge Graph Reasoning with Particle Embeddings", NAACL Findings 2022, as
FedCQA uses it. An anchor's particles are e + offset_p. A projection moves each particle through a gate,

    z = σ(W_z [x, r]), g = σ(W_g [x, r]), h = tanh(W_h [x ∘ g, r]), x' = (1 − z) ∘ x + z ∘ h,

and lets particles attend to each other; one that does not start from an anchor begins with an attention block. An
intersection is two attention blocks over the particles of all parts, a negation one. An entity's score is that of its
best particle. There is no dropout.

The public code of FedCQA (`published`) takes one map for queries, keys and values alike, so that a particle attends
mostly to itself.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from secure_kg.models.queries.encoder import Encoder, State


class Q2P(Encoder):
    """States are particles [b, k, d]."""

    title: ClassVar[str] = "Query2Particles"

    def anchor(self, rows: Tensor) -> State:
        return rows[:, None] + self.operators["particles"]

    def project(self, state: State, relation: Tensor, of_anchor: bool) -> State:
        if not of_anchor:
            state = self._block("higher", state)
        along = relation[:, None].expand_as(state)
        update, keep = self._linear("gates", torch.cat((state, along), -1)).sigmoid().chunk(2, -1)
        moved = self._linear("candidate", torch.cat((state * keep, along), -1)).tanh()
        state = self._norm("gated", torch.lerp(state, moved, update))
        return self._norm("among", state + self._attend("among", state))

    def intersect(self, states: Sequence[State]) -> State:
        together = torch.cat(list(states), dim=1)
        return self._block("intersection.2", self._block("intersection.1", together))

    def complement(self, state: State) -> State:
        return self._block("complement", state)

    def points(self, state: State) -> Tensor:
        return state

    def _block(self, name: str, state: State) -> State:
        state = self._norm(f"{name}.first", state + self._attend(name, state))
        hidden = self._linear(f"{name}.hidden", state).relu()
        return self._norm(f"{name}.second", state + self._linear(f"{name}.out", hidden))

    def _attend(self, name: str, state: State) -> Tensor:
        mapped = self._linear(f"{name}.attention", state)
        query, key, value = (mapped, mapped, mapped) if self.shape.published else mapped.chunk(3, -1)
        weights = (query @ key.transpose(1, 2) / math.sqrt(self.shape.dim)).softmax(-1)
        return weights @ value

    def _linear(self, name: str, state: Tensor) -> Tensor:
        return linear(state, self.operators[f"{name}.weight"], self.operators[f"{name}.bias"])

    def _norm(self, name: str, state: Tensor) -> Tensor:
        return layer_norm(state, (self.shape.dim,), self.operators[f"{name}.gain"], self.operators[f"{name}.bias"])
