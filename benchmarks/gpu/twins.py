"""A device beside the CPU: the same learners, kernels, ranks and marks on both, and how far they may be apart.

Single precision rounds every operation to a part of 2^-24. The CPU's compiled loops and a GPU's kernels add the same
terms in other orders, so a sum of n terms may differ by some sqrt(n) of these parts, and by n of them at most. What is
computed in whole numbers, or by a device twice, may not differ at all.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from benchmarks.gpu.cases import Case, graphs, learners
from secure_kg.data.graph import ClientGraph, Side
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.learning.device import CPU, to_device
from secure_kg.learning.learner import Learner
from secure_kg.learning.negatives import NegativeSampler
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.geometry import BY_NORM, COMPLEX_L1, DOT, Geometry
from secure_kg.models.registry import build_model
from secure_kg.models.shapes import MODELS

GEOMETRIES: Final[dict[str, Geometry]] = {
    "dot product": DOT,
    "L1 distance": BY_NORM[1],
    "L2 distance": BY_NORM[2],
    "complex L1 distance": COMPLEX_L1,
}
_PART: Final = 2.0**-24
_USUAL: Final = 64.0
"""How many times sqrt(n) parts may be apart: values go through some dozen operations, each of which rounds."""
EXACT: Final = "whole numbers: no operation rounds"
REPEATED: Final = "the same device, software and settings: every sum is added in the same order"
_AMPLIFIED: Final = "Adam divides by the gradient's size: where one nearly cancels, its last bits decide"
_WIDTH: Final = 64
"""Terms of a row's gradient for each triple: its candidates, and the coordinates of each."""
_PLACES: Final = 0.01
_LATER: Final = 0.02


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison."""

    name: str
    what: str
    difference: float
    allowed: float
    reason: str

    @property
    def holds(self) -> bool:
        return self.difference <= self.allowed  # not if it is no number


def rounding(terms: int) -> float:
    """How far sums of so many terms may be apart, as a share of the largest of them."""
    return _USUAL * math.sqrt(terms) * _PART


def _told(terms: int) -> str:
    return f"sums of up to {terms:,} terms in another order: {_USUAL:.0f} · √n · 2⁻²⁴ of the largest"


def _apart(one: Tensor, other: Tensor) -> float:
    """The largest difference as a share of the largest value."""
    first, second = (values.detach().cpu().double() for values in (one, other))
    if not (first.isfinite().all() and second.isfinite().all()):
        return math.inf
    largest = float(first.abs().max()) if first.numel() else 0.0
    apart = float((first - second).abs().max()) if first.numel() else 0.0
    return apart / largest if largest else apart


# --- learners -------------------------------------------------------------------------------------------------------


def compare_learner(case: Case, device: torch.device) -> list[Compared]:
    """One step from the same beginning on both: ranks before it, the loss, and the gradients as Adam has seen them."""
    one_step = case.in_one_step()
    here, there = one_step.make(CPU), one_step.make(device)
    drawn = Compared(case.name, "first parameters", float(here.digest() != there.digest()), 0.0, "drawn on the CPU")
    ranks = abs(_mrr(here) - _mrr(there))
    terms = _WIDTH * max(len(graph.train) for graph in graphs(case.config))
    one, other = here.train(2), there.train(2)
    states = here.state(), there.state()
    seen = [key for key in states[0] if key.endswith("exp_avg")]  # of each step's gradient
    kept = seen or list(here.parameters_state())
    apart = max(_apart(*(state[key] for state in states)) for key in kept)
    steps = max((int(value) for key, value in states[0].items() if key.endswith("step")), default=0)
    loss = abs(one.loss - other.loss) / (abs(one.loss) or 1.0)
    return [
        drawn,
        Compared(case.name, "validation MRR", ranks, _PLACES, "candidates within rounding of the answer change places"),
        Compared(case.name, "loss", loss, rounding(terms), _told(terms)),
        Compared(case.name, "gradients", apart, rounding(terms), _told(terms))
        if steps == 1
        else Compared(case.name, "gradients of steps" if seen else "rows after a step", apart, _LATER, _AMPLIFIED),
    ]


def _mrr(learner: Learner) -> float:
    return float(learner.evaluate("valid").figures().get("mrr", math.nan))


def compare_again(case: Case, device: torch.device) -> list[Compared]:
    """Two runs of two rounds on the device, and one that is resumed between them."""
    runs = [case.make(device) for _ in range(2)]
    for run in runs:
        run.train(2)
    state = {key: value.clone() for key, value in runs[0].state().items()}
    for run in runs:
        run.train(3)
    resumed = case.make(device)
    resumed.load_state(state)
    resumed.train(3)
    first, again, later = (run.digest() for run in (*runs, resumed))
    return [
        Compared(case.name, "two runs bit for bit", float(first != again), 0.0, REPEATED),
        Compared(case.name, "a resumed run bit for bit", float(first != later), 0.0, REPEATED),
    ]


# --- kernels, ranks and marks ---------------------------------------------------------------------------------------


def compare_kernels(device: torch.device) -> Iterator[Compared]:
    """Pairs of points with their gradients, counts of candidates, and marks on negatives."""
    for name, geometry in GEOMETRIES.items():
        yield from _compare_pairs(name, geometry, device)
    for model in MODELS:
        yield _compare_counts(model, device)
    for side in ("tail", "head"):
        yield _compare_marks(side, device)


def _compare_pairs(name: str, geometry: Geometry, device: torch.device) -> list[Compared]:
    width, rng = 64, np.random.default_rng(1)
    x, y, g = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 7, width), (2, 9, width), (2, 7, 9)))
    y[0, 0] = x[0, 0]  # a distance of zero, where a gradient has to be one that there is
    found: list[list[Tensor]] = []
    for place in (CPU, device):
        points = [to_device(array.copy(), place).requires_grad_() for array in (x, y)]
        similarity = geometry.pairs(*points)
        found.append([similarity, *torch.autograd.grad(similarity, points, to_device(g.copy(), place))])
    values, *gradients = (_apart(one, other) for one, other in zip(*found, strict=True))
    terms = width * 9
    return [
        Compared(name, "pairs", values, rounding(terms), _told(terms)),
        Compared(name, "gradients of pairs", max(gradients), rounding(terms), _told(terms)),
    ]


def whole_rows(model: EmbeddingModel, seed: int) -> None:
    """Small whole numbers, so that products, sums and differences are exact; complex rows are real, phases are zero."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in (model.entity, model.relation):
            parameter.copy_(torch.from_numpy(rng.integers(-2, 3, parameter.shape).astype(np.float32)))
        if model.name == "RotatE":
            model.relation.zero_()
        if model.geometry is COMPLEX_L1:
            model.entity[:, model.entity.shape[1] // 2 :] = 0


def _compare_counts(name: str, device: torch.device) -> Compared:
    """Ranks of whole numbers, with many ties."""
    graph = ranking_graph()
    size = ModelSize(len(graph.entities), len(graph.relations), 8, 4.0, train=graph.train)
    model = build_model(name, size, torch.Generator())
    whole_rows(model, 3)
    sums = []
    for place in (CPU, device):
        there = build_model(name, size, torch.Generator())
        there.load_state_dict(model.state_dict())
        sums.append(FilteredRanking(graph, place).rank(there.to(place), graph.test, "both"))
    exact = "whole numbers: nothing is rounded, ties are ties"
    return Compared(name, "ranks of whole numbers", float(sums[0] != sums[1]), 0.0, exact)


def ranking_graph() -> ClientGraph:
    """A graph whose triples repeat heads, relations and tails, so that much is filtered."""
    rng = np.random.default_rng(5)
    entities, relations = 40, 3
    triples = np.unique(np.column_stack([rng.integers(0, top, 400) for top in (entities, relations, entities)]), axis=0)
    triples = rng.permutation(triples)
    names = tuple(f"{number:02d}" for number in range(entities))
    parts = np.split(triples, [len(triples) - 120, len(triples) - 60])
    return ClientGraph(names, names[:relations], *(part.astype(np.int64) for part in parts))


def _compare_marks(side: Side, device: torch.device) -> Compared:
    graph, drawn = ranking_graph(), []
    for place in (CPU, device):
        sampler = NegativeSampler(graph, 17, 32, place)
        negatives = sampler.draw(to_device(graph.train, place), side, np.random.default_rng(7))
        drawn.append([negatives.entities.cpu(), negatives.false_negative.cpu()])
    same = all(torch.equal(one, other) for one, other in zip(*drawn, strict=True))
    return Compared("negatives", f"candidates and marks of {side}s", float(not same), 0.0, EXACT)


def compare_all(device: torch.device, tell: Callable[[str], None] = lambda what: None) -> list[Compared]:
    """Everything, for one device."""
    found = []
    for case in learners():
        tell(f"comparing: {case.name}")
        found += [*compare_learner(case, device), *compare_again(case, device)]
    tell("comparing: kernels")
    return [*found, *compare_kernels(device)]
