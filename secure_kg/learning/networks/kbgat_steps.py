"""Training of KB-GAT on one client's graph: the encoder by a margin loss, the decoder by a soft one.

Both are functions of what they are handed: draws come from generators alone, optimisers are new each time.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from secure_kg.data.graph import Side, TripleArray
from secure_kg.learning.adam import Adam
from secure_kg.learning.device import to_device
from secure_kg.learning.networks.corrupting import Corruption
from secure_kg.models.networks.attention import Kept
from secure_kg.models.networks.base import Nodes
from secure_kg.models.networks.convkb import ConvKB
from secure_kg.models.networks.edges import Edges
from secure_kg.models.networks.kbgat import Kbgat, distances
from secure_kg.models.networks.kbgat_config import KbgatConfig

_SIDES: Final[tuple[Side, Side]] = ("tail", "head")


@dataclass(frozen=True, slots=True)
class Stage:
    """What both trainings need."""

    train: TripleArray
    edges: Edges
    corruption: Corruption
    config: KbgatConfig
    device: torch.device


@dataclass(frozen=True, slots=True)
class Fit:
    """Mean loss of each epoch, and what was done in all of them."""

    losses: tuple[float, ...]
    triples: int
    steps: int


def train_encoder(
    stage: Stage, network: Kbgat, rate: float, draws: np.random.Generator, dropped: torch.Generator
) -> tuple[Fit, Nodes]:
    """`local_epochs` passes over the train part; returns the rows that come out as well.

    Rows of entities that go in are brought to length one before each step. Those that come out are the whole graph's
    without dropout, or what the last batch has left (`final_rows`), as in the public code.
    """
    config = stage.config
    trained = [network.entity, network.relation, *network.encoder.parameters()]
    optimiser, kept = Adam(trained, rate), Kept(config.attention_dropout, dropped)
    losses, steps, nodes = [], 0, None
    for _ in range(config.local_epochs):
        loss_sum = torch.zeros((), dtype=torch.float64, device=stage.device)
        order = draws.permutation(len(stage.train))
        for first in range(0, len(order), config.batch_size):
            positive = stage.train[order[first : first + config.batch_size]]
            negative = _corrupted(stage, positive, draws)
            _to_length_one(network.entity)
            true, false = (to_device(part, stage.device) for part in (positive, negative))
            nodes = network.encoder(
                stage.edges, network.entity, network.relation, kept, _attended(stage, network, true, false)
            )
            loss = margin_loss(nodes, true, false, config.margin)
            _step(optimiser, loss, config.weight_decay)
            loss_sum += loss.detach() * len(positive)
            steps += 1
        losses.append(float(loss_sum) / len(order))
    fit = Fit(tuple(losses), len(stage.train) * config.local_epochs, steps)
    if config.final_rows == "last-batch" and nodes is not None:
        return fit, Nodes(nodes.entity.detach(), nodes.relation.detach())
    with torch.no_grad():
        _to_length_one(network.entity)
        return fit, network.encoder(stage.edges, network.entity, network.relation)


def margin_loss(nodes: Nodes, true: Tensor, false: Tensor, margin: float) -> Tensor:
    """Mean of max(0, d(true) − d(false) + margin); false [negatives · b, 3] are those of true [b, 3], over and over."""
    found = distances(nodes, torch.cat((true, false)))
    positive, negative = found.tensor_split((len(true),))
    return (positive - negative.view(-1, len(true)) + margin).relu().mean()


def fit_decoder(stage: Stage, decoder: ConvKB, nodes: Nodes, draws: np.random.Generator) -> tuple[Fit, Nodes]:
    """`decoder_epochs` passes from the decoder as it is; returns the rows of `nodes` as fitted with it.

    In the public code, too, these rows are parameters of the decoder's optimiser.
    """
    config = stage.config
    entity, relation = (nn.Parameter(rows.detach().clone()) for rows in (nodes.entity, nodes.relation))
    optimiser = Adam([entity, relation, *decoder.parameters()], config.lr)
    fitted, half = Nodes(entity, relation), config.decoder_negatives // 2
    losses, steps = [], 0
    for epoch in range(config.decoder_epochs):
        optimiser.rate = config.lr * 0.5 ** (epoch // config.decoder_halving)
        loss_sum = torch.zeros((), dtype=torch.float64, device=stage.device)
        order = draws.permutation(len(stage.train))
        for first in range(0, len(order), config.decoder_batch_size):
            positive = stage.train[order[first : first + config.decoder_batch_size]]
            drawn = (stage.corruption.draw(positive, side, half, draws) for side in _SIDES)
            true, tails, heads = (to_device(part, stage.device) for part in (positive, *drawn))
            loss = soft_loss(decoder, fitted, true, tails, heads)
            _step(optimiser, loss, config.decoder_weight_decay)
            loss_sum += loss.detach() * len(positive)
            steps += 1
        losses.append(float(loss_sum) / len(order))
    fit = Fit(tuple(losses), len(stage.train) * config.decoder_epochs, steps)
    return fit, Nodes(entity.detach(), relation.detach())


def soft_loss(decoder: ConvKB, nodes: Nodes, true: Tensor, tails: Tensor, heads: Tensor) -> Tensor:
    """Mean of log(1 + exp(−y f)): y = 1 for true [b, 3], −1 for these with false tails [b, n] and heads [b, n]."""
    columns = 1, 1 + tails.shape[1], heads.shape[1]
    ids = torch.cat((true[:, :1], true[:, 2:], tails, heads), dim=1)
    rows = nodes.entity.index_select(0, ids.view(-1)).view(len(true), sum(columns), -1)
    head, tail_rows, head_rows = torch.split(rows, list(columns), dim=1)
    along = nodes.relation.index_select(0, true[:, 1])[:, None]
    by_tail = decoder.against((head, along), tail_rows, "tail")[:, 0]
    by_head = decoder.against((along, tail_rows[:, :1]), head_rows, "head")[:, 0]
    return softplus(torch.cat((-by_tail[:, :1], by_tail[:, 1:], by_head), dim=1)).mean()


def _corrupted(stage: Stage, positive: TripleArray, draws: np.random.Generator) -> TripleArray:
    """Negatives [negatives · b, 3]: the batch with other tails, then with other heads, as often as asked for."""
    made = []
    for side, column in zip(_SIDES, (2, 0), strict=True):
        drawn = stage.corruption.draw(positive, side, stage.config.negatives // 2, draws)
        for one in drawn.T:
            changed = positive.copy()
            changed[:, column] = one
            made.append(changed)
    return np.concatenate(made)


def _attended(stage: Stage, network: Kbgat, true: Tensor, false: Tensor) -> Tensor | None:
    """Where H' counts: in the public code at the tails of a batch only."""
    if stage.config.final_rows == "whole":
        return None
    mask = torch.zeros(len(network.entity), device=stage.device)
    return mask.index_fill_(0, torch.cat((true[:, 2], false[:, 2])), 1.0)


def _to_length_one(rows: nn.Parameter) -> None:
    with torch.no_grad():
        rows.copy_(normalize(rows))


def _step(optimiser: Adam, loss: Tensor, decay: float) -> None:
    """One step with L2 regularisation, which goes into the moments."""
    gradients = torch.autograd.grad(loss, optimiser.parameters)
    for parameter, gradient in zip(optimiser.parameters, gradients, strict=True):
        parameter.grad = gradient.add(parameter.detach(), alpha=decay)
    optimiser.step()
