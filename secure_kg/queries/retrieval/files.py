"""What a party of a question finds in the files of a finished run. A client opens its own folder and no other."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import torch

from protocols.alignment.interface import Positions
from secure_kg.data.client_data import load_graph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.query_learner import BOTH, ENTITIES
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.queries.retrieval.facts import Vocabulary
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.run_terms import query_settings, shared_block
from secure_kg.runs import checkpoint
from secure_kg.runs.alignment_files import own_positions
from secure_kg.runs.run_folder import RunFolder

_MODEL = "model.safetensors"
_AVERAGED = "shared/averaged"


def load_knowledge(run: Path, config: RunConfig, clients: int, number: int, rules: Rules) -> Knowledge:
    """What client `number` knows: its graph's names, its model of the best round, its alignment."""
    folder, queries = RunFolder(run).client(number), query_settings(config)
    graph = load_graph(config, clients, number)
    size = QueryModelSize(len(graph.entities), len(graph.relations), queries.encoder, queries.shape, queries.score)
    entities = [f"entity {name}" for name in graph.entities]
    ways = [f"{way} {name}" for name in graph.relations for way in ("relation", "inverse of")]
    names = {ENTITIES: entities, BOTH: [*entities, *ways]}[shared_block(config)]
    aligned = own_positions(folder, names)
    positions = Positions(aligned.union_size, aligned.own[: len(entities)], aligned.digest)
    averaged = _averaged(folder, positions) if "shared" in (rules.names, rules.anchors) else None
    stored = graph.train if rules.facts == "train" else np.concatenate([graph.train, graph.valid, graph.test])
    own = Vocabulary(graph.entities, graph.relations, graph.prefixes)
    return Knowledge(own, load_model(folder, size), positions, averaged, rules, stored)


def load_model(folder: Path, size: QueryModelSize) -> QueryModel:
    """The model of the best round in a client's folder, without gradients."""
    path = folder / _MODEL
    arrays, _ = checkpoint.load_numbers(path)
    nothing = torch.Generator()
    model = QueryModel(replace(size, entities=0, relations=0), nothing, nothing)
    rows, operators = arrays.get("rows"), arrays.get("operators")
    if not _are_numbers(rows, (size.rows, size.shape.dim)) or not _are_numbers(operators, model.operators.shape):
        raise UserError(f"{path}: not a model of this client's graph")
    model.size = size
    model.rows = torch.nn.Parameter(torch.from_numpy(rows), requires_grad=False)
    model.operators = torch.nn.Parameter(torch.from_numpy(operators), requires_grad=False)
    return model


def _are_numbers(array: npt.NDArray[Any] | None, shape: Sequence[int]) -> TypeGuard[npt.NDArray[np.float32]]:
    return array is not None and array.shape == tuple(shape) and array.dtype == np.float32


def _averaged(folder: Path, positions: Positions) -> npt.NDArray[np.bool_]:
    """Which own entities were averaged, as the client's last checkpoint has it."""
    last = checkpoint.latest_before(folder, 1 << 31)
    rounds = checkpoint.load_part(folder, last)[0].get(_AVERAGED) if last is not None else None
    if rounds is None or rounds.shape != (positions.union_size,):
        raise UserError(
            f"{folder}: no checkpoint says which rows were averaged; say --name-policy and --anchor-policy "
            "all or none"
        )
    averaged: npt.NDArray[np.bool_] = rounds[positions.own] > 0
    return averaged
