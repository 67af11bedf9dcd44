"""GQE: a set is a point, a relation a translation.

Reference: Hamilton et al., "Embedding Logical Queries on Knowledge Graphs", NeurIPS 2018. The intersection is that of
Query2box (Ren et al., ICLR 2020), Σ_k a_k ∘ q_k with a = softmax_k(W' relu(W q_k + b) + b') in every dimension: it does
not depend on the order of its parts. The public code of FedCQA (`published`) has W mean_k MLP(q_k) instead, which moves
q even if all parts are equal.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from secure_kg.models.queries.encoder import Encoder, State


class GQE(Encoder):
    """States are points [b, d]."""

    title: ClassVar[str] = "GQE"

    def anchor(self, rows: Tensor) -> State:
        return rows

    def project(self, state: State, relation: Tensor, of_anchor: bool) -> State:
        return state + relation

    def intersect(self, states: Sequence[State]) -> State:
        stacked, own = torch.stack(list(states)), self.operators
        hidden = linear(stacked, own["hidden.weight"], own["hidden.bias"]).relu()
        if self.shape.published:
            out = linear(hidden, own["out.weight"], own["out.bias"])
            return linear(out.mean(0), own["mean.weight"], own["mean.bias"])
        weights = linear(hidden, own["weights.weight"], own["weights.bias"]).softmax(0)
        return (weights * stacked).sum(0)

    def points(self, state: State) -> Tensor:
        return state[:, None]
