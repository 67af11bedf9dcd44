"""The linear classifier of FedE's fusion, trained by the margin ranking loss (equation 6).

L_f(h, r, t) = max(0, β − s(h, r, t) + s(h, r, t'))   with β = 10 and negatives t' that are no train triples.

Both models stay as they are, so a positive and its negative enter the loss as constants, and only by the difference of
their features: s(h, r, t) − s(h, r, t') = W d with d = x − x'. (So b has no gradient, and stays at its start of 0.) The
differences are computed once; an epoch is a pass over them.

The scores of the two models may differ in scale by any factor, while Adam's step is the same for both weights. So the
fit is done in units of each model's own differences (their root mean square), and W is scaled back.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.fusion.scores import Weights
from secure_kg.learning.device import to_device
from secure_kg.learning.negatives import NegativeSampler
from secure_kg.models.base import EmbeddingModel

_BATCH: Final = 512  # triples that share their negatives
_MOST_PAIRS: Final = 2**23  # of a positive and a negative; more would only fill memory
_STEPS: Final = 100  # per epoch, whatever the size of the graph
_LR: Final = 0.1


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """β, passes over the pairs, negatives per triple, and the triples that the weights are fitted to.

    The paper's text fits them to the client's train triples, its code to those of the validation part.
    """

    beta: float = 10.0
    epochs: int = 10
    negatives: int = 64
    fit_on: Literal["train", "valid"] = "train"


@dataclass(frozen=True, slots=True)
class Epoch:
    """The weights after one pass, and the mean loss during it."""

    weights: Weights
    loss: float


@torch.no_grad()
def differences(
    models: tuple[EmbeddingModel, EmbeddingModel],
    graph: ClientGraph,
    triples: TripleArray,
    negatives: int,
    rng: np.random.Generator,
    device: torch.device,
) -> Tensor:
    """Features of positives less those of their negatives, [pairs, 2] in double precision, in random order.

    Negatives are drawn from the client's own entities, shared by a batch; those that make a train triple are left out.
    """
    each = max(1, min(negatives, _MOST_PAIRS // max(1, len(triples))))
    sampler = NegativeSampler(graph, each, _BATCH, device)
    shuffled = to_device(triples[rng.permutation(len(triples))], device)
    found = []
    for batch in torch.split(shuffled, _BATCH):
        drawn = sampler.draw(batch, "tail", rng)
        (candidates,) = drawn.entities  # one group
        keep = ~drawn.false_negative & (candidates != batch[:, 2:])
        columns = []
        for model in models:
            h, t = model.entity[batch[:, 0]], model.entity[batch[:, 2]]
            r = model.relation_rows(batch[:, 1], model.relation[batch[:, 1]])
            difference = model.score(h, r, t)[:, None] - model.score_tails(h, r, model.entity[candidates])
            columns.append(difference.double()[keep])
        found.append(torch.stack(columns, dim=1))
    pairs = torch.cat(found)
    return pairs[to_device(rng.permutation(len(pairs)), device)]


def fusion_loss(weights: Tensor, pairs: Tensor, beta: float) -> Tensor:
    """Equation 6, the mean over pairs [n, 2] for W [2]."""
    return torch.relu(beta - pairs @ weights).mean()


def fit(pairs: Tensor, settings: FusionSettings) -> list[Epoch]:
    """One entry per epoch. The fit starts where both models weigh alike, in units of their own differences."""
    if len(pairs) == 0:  # every candidate is a true triple
        return []
    scale = pairs.square().mean(0).sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))  # a model that scores everything alike
    scaled = pairs / scale
    weights = torch.ones(2, dtype=torch.float64, device=pairs.device, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=_LR)
    batches = torch.split(scaled, max(1, -(-len(scaled) // _STEPS)))
    epochs = []
    for _ in range(settings.epochs):
        total = 0.0
        for batch in batches:
            loss = fusion_loss(weights, batch, settings.beta)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        single, federated = (weights.detach() / scale).tolist()
        epochs.append(Epoch(Weights(single, federated), total / len(scaled)))
    return epochs
