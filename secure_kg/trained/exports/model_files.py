"""Export as safetensors: the rows as they are, vocabularies as TSV, and what the numbers mean as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import save

from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_json, write_whole
from secure_kg.trained.client_model import ClientModel
from secure_kg.trained.exports.files import write_pieces
from secure_kg.trained.scorers import EmbeddingScorer, NetworkScorer, QueryScorer, Tables

_SCORES: Final = {
    "TransE": "margin - ||h + r - t||_norm",
    "TransM": "margin - weight[r] ||h + r - t||_norm",
    "RotatE": "margin - sum_j |h_j exp(i r_j pi / phase_unit) - t_j|",
    "DistMult": "sum_j h_j r_j t_j",
    "ComplEx": "Re sum_j h_j r_j conj(t_j)",
    "RESCAL": "h^T M_r t",
}
_LAYOUTS: Final = {
    "RotatE": "entity rows: real parts, then imaginary parts; relation rows: r_j",
    "ComplEx": "rows: real parts, then imaginary parts",
    "RESCAL": "relation rows: the matrix M_r, row by row",
}


def export_safetensors(model: ClientModel, out: Path) -> list[str]:
    """`model.safetensors`, `entities.tsv`, `relations.tsv`, `model.json`."""
    write_tensors(out / "model.safetensors", model.scorer.tables())
    write_vocabulary(out / "entities.tsv", model.graph.entities)
    write_vocabulary(out / "relations.tsv", model.graph.relations)
    write_json(out / "model.json", about(model), private=True)
    return []


def write_tensors(path: Path, tables: Tables) -> None:
    write_whole(path, save({name: np.ascontiguousarray(table) for name, table in tables.items()}), private=True)


def write_vocabulary(path: Path, names: Sequence[str]) -> None:
    """Lines `id<TAB>name`, without quotes: a name holds neither tabs nor line ends, as the files it came from."""
    if any(mark in name for name in names for mark in "\t\n\r"):
        raise UserError(f"{path}: a name holds a tab or a line end, so no such file could hold it")
    write_pieces(path, (f"{number}\t{name}\n" for number, name in enumerate(names)))


def about(model: ClientModel) -> dict[str, Any]:
    """What a reader of the rows has to know."""
    found: dict[str, Any] = {"client": model.number, "model": model.scorer.name}
    match model.scorer:
        case EmbeddingScorer(model=rows):
            size = rows.size
            found |= {"dim": size.dim, "score": _SCORES[rows.name], "layout": _LAYOUTS.get(rows.name, "plain rows")}
            if rows.offset:
                found["margin"] = rows.offset
            if "norm" in _SCORES[rows.name]:
                found["norm"] = size.norm
            if (unit := getattr(rows, "phase_unit", None)) is not None:
                found["phase_unit"] = unit
        case NetworkScorer():
            found |= {"score": model.scorer.described, "layout": "encoded rows, which scores are made of"}
        case QueryScorer(model=encoder):
            found |= {
                "dim": encoder.size.shape.dim,
                "particles": encoder.size.shape.particles,
                "score": encoder.size.compares,
                "layout": "relation rows: row 2 r is relation r, row 2 r + 1 its inverse; operators: one flat vector",
            }
    return found
