"""tree-LSTM: a set is the state (h, c) of a long short-term memory that reads the query from its leaves.

Reference: Tai et al., "Improved Semantic Representations From Tree-Structured LSTMs", ACL 2015, as FedCQA uses it. An
anchor is (e, 0). A projection is one step with the relation's row as input; an intersection one step with an input of
its own, over the sum of its parts' h, with a forget gate for each part:

    i, o, u = σ, σ, tanh of W x + U h;  f_k = σ(W_f h_k + U_f h);  c' = Σ_k f_k ∘ c_k + i ∘ u;  h' = o ∘ tanh c'.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from secure_kg.models.queries.encoder import Encoder, State


class TreeLSTM(Encoder):
    """States are h and c [b, 2, d]."""

    title: ClassVar[str] = "tree-LSTM"

    def anchor(self, rows: Tensor) -> State:
        return torch.stack((rows, torch.zeros_like(rows)), dim=1)

    def project(self, state: State, relation: Tensor, of_anchor: bool) -> State:
        hidden, cell = state.unbind(1)
        inward, outward, update, forget = self._gates(relation, hidden)
        return self._next(inward, outward, update, forget.sigmoid() * cell)

    def intersect(self, states: Sequence[State]) -> State:
        hidden, cells = torch.stack(list(states)).unbind(2)  # each [parts, b, d]
        together, own = hidden.sum(0), self.operators
        inward, outward, update, _ = self._gates(own["intersection"].expand_as(together), together)
        by_part = linear(hidden, own["forget_part.weight"], own["forget_part.bias"])
        forget = (by_part + linear(together, own["forget_sum.weight"])).sigmoid()
        return self._next(inward, outward, update, (forget * cells).sum(0))

    def points(self, state: State) -> Tensor:
        return state[:, :1]

    def _gates(self, read: Tensor, hidden: Tensor) -> Sequence[Tensor]:
        own = self.operators
        return (linear(read, own["input.weight"], own["input.bias"]) + linear(hidden, own["state.weight"])).chunk(4, -1)

    def _next(self, inward: Tensor, outward: Tensor, update: Tensor, kept: Tensor) -> State:
        cell = kept + inward.sigmoid() * update.tanh()
        return torch.stack((outward.sigmoid() * cell.tanh(), cell), dim=1)
