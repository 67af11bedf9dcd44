"""Export for PyKEEN: tensors under the names of its state, triples as TSV, names and settings as JSON. No pickle.

Conventions that differ: PyKEEN's distance models score without a margin, which changes no rank. It stores complex
numbers as pairs, and a rotation as the number itself where ours is a phase. Its RotatE takes the Euclidean norm where
the paper and ours add up moduli; the lines that load one replace that. Constraints and regularisers are off, so
that going on with training does not begin by changing the rows. Its RESCAL cannot be without one, so a plain `ERModel`
with the same interaction is in its place.
"""

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from secure_kg.data.triples import PARTS
from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel
from secure_kg.models.shapes import initial_range
from secure_kg.runs.run_folder import write_json
from secure_kg.trained.client_model import ClientModel
from secure_kg.trained.exports.files import write_pieces
from secure_kg.trained.exports.model_files import write_tensors
from secure_kg.trained.scorers import EmbeddingScorer

Rows = npt.NDArray[np.float32]
_STATE: Final = "{}_representations.0._embeddings.weight"
_MODELS: Final = {
    "TransE": "TransE",
    "RotatE": "RotatE",
    "DistMult": "DistMult",
    "ComplEx": "ComplEx",
    "RESCAL": "ERModel",
}
"""Classes of PyKEEN."""
_LOAD: Final = """\
import json
from pykeen.models import {name}
from pykeen.triples import TriplesFactory
from pykeen.triples.utils import load_triples
from safetensors.torch import load_file

about = json.load(open("pykeen.json", encoding="utf-8"))
train, valid, test = (
    TriplesFactory.from_labeled_triples(load_triples(f"{{part}}.tsv"), **about["ids"]) for part in about["parts"]
)
model = {name}(triples_factory=train, **about["model"])
{more}model.load_state_dict(load_file("model.safetensors"))
"""
_SUMMED_ROTATE: Final = """\
class SummedRotatE(type(model.interaction)):  # minus the sum of moduli; PyKEEN's own takes the Euclidean norm
    def forward(self, h, r, t):
        return -(h * r - t).abs().sum(-1)
model.interaction = SummedRotatE()
"""
EVALUATE: Final = """\
from pykeen.evaluation import RankBasedEvaluator

known = [train.mapped_triples, valid.mapped_triples]
result = RankBasedEvaluator().evaluate(model, test.mapped_triples, additional_filter_triples=known, use_tqdm=False)
print(result.get_metric("tail.realistic.inverse_harmonic_mean_rank"))
"""


def export_pykeen(model: ClientModel, out: Path) -> list[str]:
    """`model.safetensors`, `pykeen.json`, `train.tsv`, `valid.tsv`, `test.tsv`."""
    rows = _embeddings(model)
    graph = model.graph
    if any("\0" in name for name in (*graph.entities, *graph.relations)):
        raise UserError(f"{out}: a name holds a zero byte, which PyKEEN's reader takes for an end")
    entity, relation = pykeen_rows(rows)
    write_tensors(out / "model.safetensors", {_STATE.format("entity"): entity, _STATE.format("relation"): relation})
    ids = {
        "entity_to_id": {name: number for number, name in enumerate(graph.entities)},
        "relation_to_id": {name: number for number, name in enumerate(graph.relations)},
        "compact_id": False,
        "filter_out_candidate_inverse_relations": False,
    }
    about = {
        "model": _settings(rows),
        "parts": list(PARTS),
        "ids": ids,
    }
    write_json(out / "pykeen.json", about, private=True)
    for part in PARTS:
        write_pieces(out / f"{part}.tsv", _lines(model, graph.part(part)))
    return []


def loading_lines(model: ClientModel) -> str:
    """The lines that load the export, in its folder."""
    name = _embeddings(model).name
    return _LOAD.format(name=_MODELS[name], more=_SUMMED_ROTATE if name == "RotatE" else "")


def _settings(model: EmbeddingModel) -> dict[str, Any]:
    """Arguments of PyKEEN's class besides the triples."""
    dim = model.size.dim
    match model.name:
        case "TransE":
            return {"embedding_dim": dim, "scoring_fct_norm": model.size.norm, "entity_constrainer": None}
        case "DistMult":
            return {"embedding_dim": dim, "entity_constrainer": None, "regularizer": None}
        case "ComplEx":
            return {"embedding_dim": dim, "regularizer": None}
        case "RESCAL":
            shapes = {"entity_representations_kwargs": dim, "relation_representations_kwargs": [dim, dim]}
            return {"interaction": "rescal", **{name: {"shape": shape} for name, shape in shapes.items()}}
        case _:
            return {"embedding_dim": dim}


def pykeen_rows(model: EmbeddingModel) -> tuple[Rows, Rows]:
    """Entity and relation rows as PyKEEN lays them out."""
    entity, relation = model.entity.detach().numpy(), model.relation.detach().numpy()
    match model.name:
        case "RotatE":
            phases = relation.astype(np.float64) * (math.pi / initial_range(model.size.margin, model.size.dim))
            turned = np.concatenate((np.cos(phases), np.sin(phases)), axis=1).astype(np.float32)
            return _pairs(entity), _pairs(turned)
        case "ComplEx":
            return _pairs(entity), _pairs(relation)
        case _:
            return entity, relation


def _pairs(rows: Rows) -> Rows:
    """Real parts, then imaginary parts [n, 2 dim], to the two of each coordinate side by side [n, 2 dim]."""
    real, imaginary = np.split(rows, 2, axis=1)
    return np.stack((real, imaginary), axis=2).reshape(rows.shape)


def _embeddings(model: ClientModel) -> EmbeddingModel:
    if not isinstance(model.scorer, EmbeddingScorer) or model.scorer.name not in _MODELS:
        model.scorer.tables()  # says so of what has none
        raise UserError(f"PyKEEN has no {model.scorer.name}; --to safetensors, word2vec and neo4j take its rows")
    return model.scorer.model


def _lines(model: ClientModel, triples: npt.NDArray[np.int64]) -> Iterator[str]:
    """As PyKEEN's reader takes them: a name with a quote is in quotes, and those inside are doubled."""
    entities, relations = model.graph.entities, model.graph.relations
    for head, relation, tail in triples.tolist():
        out = io.StringIO()
        fields = entities[head], relations[relation], entities[tail]
        csv.writer(out, delimiter="\t", lineterminator="\n").writerow(fields)
        yield out.getvalue()
