"""PyKEEN's own training loop and evaluator, set up to do what ours does, from the same rows, for `benchmarks.kge`.

Model: a plain `ERModel` with PyKEEN's interaction of that name, which is all that its model classes are, less what ours
has not: their constrainers of entity rows (TransE, DistMult) and regularisers (ComplEx, DistMult). It starts from our
initial rows. RotatE is the exception twice. PyKEEN's interaction takes the Euclidean norm of h ∘ r − t, whatever `p` it
is given, where the paper and ours sum the moduli of its coordinates; a subclass here does that too, and is the faster
of the two. And PyKEEN stores a relation as complex numbers that it scales to modulus one after every step, where ours
stores phases; this is left as it is: it is how PyKEEN trains a rotation, and costs nothing next to the scores.

Loss: `NSSALoss` adds its margin to the score, log σ(margin + f), and PyKEEN's distance models score −distance. So with
our margin it is the loss of our margin − distance; bilinear models, which have no margin here, get margin 0. The
weights of negatives, a softmax, do not notice a constant. NSSALoss halves the mean; Adam does not notice that.

Training: `SLCWATrainingLoop`, Adam with torch's fused kernel as in ours, heads corrupted in one half of a batch and
tails in the other (ours: alternating batches). PyKEEN draws negatives for each triple, ours for groups of triples. Its
filter of false negatives is off unless asked for, as is PyKEEN's default, though ours is always on: its Bloom filter
takes up to 6 % of a step of dimension 128 and a fifth of one of dimension 16. A graph with few entities has many false
negatives, so there the filter is worth its time to PyKEEN's MRR. Memory optimisation, progress bars, early stopping,
loss weights, pinned memory and worker processes are off. PyKEEN takes a batch whole, which is its default. Cut into
parts whose gradients are added up (`sub_batch_size`) it trains the same and, on a CPU, up to 2.7 times as fast, since
its large intermediates then stay in memory that the allocator keeps. `fastest_in_parts` measures that, too.

Evaluation: `RankBasedEvaluator`, filtered by train, valid and test, realistic rank, both sides, with no metric but the
mean reciprocal rank; by default it would compute some forty. The batch size is the fastest of a few.
"""

import dataclasses
import logging
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Final

import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.losses import NSSALoss
from pykeen.models import ERModel
from pykeen.nn.modules import (
    ComplExInteraction,
    DistMultInteraction,
    Interaction,
    RESCALInteraction,
    RotatEInteraction,
    TransEInteraction,
)
from pykeen.sampling import BasicNegativeSampler
from pykeen.training import SLCWATrainingLoop
from pykeen.training.training_loop import NonFiniteLossError
from pykeen.triples import CoreTriplesFactory
from pykeen.utils import complex_normalize, estimate_cost_of_sequence
from torch import Tensor

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.models.shapes import entity_width, initial_range, relation_width

EVAL_BATCHES: Final = (32, 128, 512)
"""Tried for speed; on a CPU they differ by some percent."""
LARGEST_EVAL: Final = 1 << 28
"""Numbers in one batch of candidates' rows, which PyKEEN spreads out for distances: 1 GiB, and there are a few."""
LARGEST_GATHER: Final = 1 << 27
"""Numbers in the relation rows of a batch's negatives, which PyKEEN gathers one by one; RESCAL's are matrices."""


class SummedRotatE(RotatEInteraction):
    """f(h, r, t) = −Σ_j |h_j r_j − t_j|: RotatE as published, and as ours without its margin."""

    is_complex: ClassVar[bool] = True

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """As PyKEEN does, turn the end that is cheaper to turn: not the many candidates of a query."""
        if estimate_cost_of_sequence(h.shape, r.shape) <= estimate_cost_of_sequence(r.shape, t.shape):
            return -(h * r - t).abs().sum(-1)
        return -(h - t * r.conj()).abs().sum(-1)


INTERACTIONS: Final[dict[str, type[Interaction[Any, Any, Any]]]] = {
    "TransE": TransEInteraction,
    "RotatE": SummedRotatE,
    "DistMult": DistMultInteraction,
    "ComplEx": ComplExInteraction,
    "RESCAL": RESCALInteraction,
}
DISTANCES: Final = ("TransE", "RotatE")
COMPLEX: Final = ("RotatE", "ComplEx")


def loss_margin(config: TrainingConfig) -> float:
    """What NSSALoss has to add to PyKEEN's score to make it ours."""
    return config.margin if config.model in DISTANCES else 0.0


def same_loss(config: TrainingConfig) -> NSSALoss:
    return NSSALoss(margin=loss_margin(config), adversarial_temperature=config.temperature)


def same_rows(trainer: KgeLearner) -> tuple[Tensor, Tensor]:
    """Our entity and relation rows in PyKEEN's layout: complex numbers as pairs, rotations instead of phases."""
    config = trainer.config
    entity, relation = (torch.from_numpy(trainer.export_block(table)) for table in ("entity", "relation"))
    if config.model == "RotatE":
        phases = relation / initial_range(config.margin, config.dim) * math.pi
        return _pairs(entity), torch.stack((phases.cos(), phases.sin()), dim=-1)
    if config.model == "ComplEx":
        return _pairs(entity), _pairs(relation)
    if config.model == "RESCAL":
        return entity, relation.view(len(relation), config.dim, config.dim)
    return entity, relation


def _pairs(rows: Tensor) -> Tensor:
    """Real parts then imaginary parts [n, 2 dim] to pairs [n, dim, 2]."""
    return torch.stack(rows.chunk(2, dim=-1), dim=-1)


PARTS_TRIED: Final = (128, 32)
_BATCHES_TRIED: Final = 6


def fastest_in_parts(trainer: KgeLearner, seed: int, filter_negatives: bool) -> tuple[int, float, float]:
    """The fastest size of parts on a few batches, triples per second, triples per CPU second; on a new model."""
    config = trainer.config
    few = trainer.graph.train[: _BATCHES_TRIED * config.batch_size]
    best = 0, 0.0, 0.0
    for size in PARTS_TRIED:
        if size >= sub_batch(config):
            continue
        peer = PyKeenPeer(trainer, seed, filter_negatives, few)
        peer.sub_batch = size
        peer.train_epoch()  # a warm-up
        started, cpu_started = time.perf_counter(), time.process_time()
        for _ in range(2):
            peer.train_epoch()
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        found = size, 2 * len(few) / seconds, 2 * len(few) / cpu_seconds
        best = max(best, found, key=lambda one: one[2])
    return best


class PyKeenPeer:
    """The twin of a `KgeLearner` that has not been trained yet."""

    def __init__(
        self, trainer: KgeLearner, seed: int, filter_negatives: bool = False, train: TripleArray | None = None
    ) -> None:
        """`train`: other train triples than the trainer's."""
        for noisy in ("pykeen", "torch_max_mem"):  # notes on CPUs and on triples without corruptions
            logging.getLogger(noisy).setLevel(logging.ERROR)
        graph, config = trainer.graph, trainer.config
        if train is not None:
            graph = dataclasses.replace(graph, train=train)
        self._graph, self._config, self._epochs = graph, config, 0
        self._parts = [torch.from_numpy(part) for part in (graph.train, graph.valid, graph.test)]
        sizes: dict[str, Any] = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
        self._triples = CoreTriplesFactory(self._parts[0], **sizes, create_inverse_triples=False)
        self.model = _build(config, self._triples, *same_rows(trainer), seed)
        self._loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=self._triples,
            optimizer=torch.optim.Adam,
            optimizer_kwargs={"lr": config.lr, "fused": True},
            # An instance, so that its filter is built once and not for every epoch.
            negative_sampler=BasicNegativeSampler(
                mapped_triples=self._parts[0],
                **sizes,
                num_negs_per_pos=config.negatives,
                filtered=filter_negatives,
            ),
            automatic_memory_optimization=False,
        )
        self._evaluator = RankBasedEvaluator(filtered=True, metrics=["mean_reciprocal_rank"], add_defaults=False)
        self.sub_batch = sub_batch(config)
        self.eval_batch = eval_batches(graph, config)[0]

    def train_epoch(self) -> None:
        """One more epoch. PyKEEN counts epochs from the first, and goes on with rows and Adam's state."""
        self._epochs += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # PyKEEN's own call of its own function
                self._loop.train(
                    self._triples,
                    num_epochs=self._epochs,
                    continue_training=self._epochs > 1,
                    batch_size=self._config.batch_size,
                    sub_batch_size=self.sub_batch,
                    num_workers=0,
                    pin_memory=False,
                    drop_last=False,
                    use_tqdm=False,
                    use_tqdm_batch=False,
                )
        except NonFiniteLossError:
            raise TrainingDiverged(
                f"PyKEEN: training is not finite in epoch {self._epochs}; a smaller --lr may help"
            ) from None

    def choose_eval_batch(self) -> None:
        """Take the fastest batch size on a slice of the test part; also a warm-up."""
        batches = eval_batches(self._graph, self._config)
        trial = self._graph.test[: batches[-1]]
        seconds: dict[int, float] = {}
        for batch in batches:
            self.eval_batch = batch
            started = time.perf_counter()
            self.evaluate(trial)
            seconds[batch] = time.perf_counter() - started
        self.eval_batch = min(batches, key=seconds.__getitem__)

    def evaluate(self, triples: TripleArray) -> float:
        """Filtered mean reciprocal rank of triples of the test part, both sides."""
        results = self._evaluator.evaluate(
            self.model,
            torch.from_numpy(triples),
            batch_size=self.eval_batch,
            additional_filter_triples=self._parts,
            use_tqdm=False,
        )
        return float(results.get_metric("both.realistic.mean_reciprocal_rank"))


def _build(
    config: TrainingConfig, triples: CoreTriplesFactory, entity: Tensor, relation: Tensor, seed: int
) -> ERModel[Any, Any, Any]:
    dtype = torch.cfloat if config.model in COMPLEX else torch.float32
    shape = (config.dim, config.dim) if config.model == "RESCAL" else (config.dim,)
    return ERModel(
        triples_factory=triples,
        interaction=INTERACTIONS[config.model],
        interaction_kwargs={"p": config.norm} if config.model == "TransE" else None,
        entity_representations_kwargs={
            "shape": config.dim,
            "dtype": dtype,
            "initializer": _starting_from(entity),
        },
        relation_representations_kwargs={
            "shape": shape,
            "dtype": dtype,
            "initializer": _starting_from(relation),
            "constrainer": complex_normalize if config.model == "RotatE" else None,
        },
        loss=same_loss(config),
        random_seed=seed,
    )


def _starting_from(rows: Tensor) -> Callable[[Tensor], Tensor]:
    """An initialiser that copies `rows`.

    PyKEEN's `PretrainedInitializer` makes its own tensor the parameter. The training loop initialises once more, for
    which torch's embedding first fills that tensor with noise: training would start from the noise.
    """
    return lambda table: table.copy_(rows)


def sub_batch(config: TrainingConfig) -> int:
    """Triples that PyKEEN scores at a time, with gradients added up: the whole batch unless it would not fit."""
    each = config.negatives * relation_width(config.model, config.dim)
    return max(1, min(config.batch_size, LARGEST_GATHER // each))


def eval_batches(graph: ClientGraph, config: TrainingConfig) -> tuple[int, ...]:
    """Batch sizes worth trying, ascending; never none."""
    each = len(graph.entities) * entity_width(config.model, config.dim)
    return tuple(batch for batch in EVAL_BATCHES if batch * each <= LARGEST_EVAL) or EVAL_BATCHES[:1]
