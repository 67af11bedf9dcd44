"""Formats of exports by name, and what their folders say of themselves."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from secure_kg.data.folders import make_empty_folder
from secure_kg.foundation.errors import UserError
from secure_kg.trained.client_model import ClientModel
from secure_kg.trained.exports import readme
from secure_kg.trained.exports.files import write_pieces
from secure_kg.trained.exports.for_pykeen import export_pykeen, loading_lines
from secure_kg.trained.exports.model_files import export_safetensors
from secure_kg.trained.exports.neo4j import export_neo4j
from secure_kg.trained.exports.word2vec import export_word2vec


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    write: Callable[[ClientModel, Path], list[str]]
    """Writes the files into an empty folder. Remarks come back, a line each."""
    explain: Callable[[ClientModel], str]
    """How the files are read, for the folder's README."""


FORMATS: Final[dict[str, Format]] = {
    "pykeen": Format(export_pykeen, lambda model: readme.pykeen(loading_lines(model))),
    "safetensors": Format(export_safetensors, lambda model: readme.SAFETENSORS),
    "word2vec": Format(export_word2vec, lambda model: readme.WORD2VEC),
    "neo4j": Format(export_neo4j, lambda model: readme.neo4j(model.scorer.tables()["entity"].shape[1])),
}


def export(model: ClientModel, form: str, out: Path) -> list[str]:
    """Write the model into the new or empty folder `out`. Remarks come back, a line each.

    The files are for their owner alone: they hold the client's names, its rows, and in part its triples.
    """
    if form not in FORMATS:
        raise UserError(f"unknown format {form}; choose one of {', '.join(FORMATS)}")
    text = readme.heading(model.number, model.scorer.name) + FORMATS[form].explain(model)  # refuses before it writes
    model.scorer.tables()  # likewise
    new = not out.exists()
    make_empty_folder(out)
    try:
        out.chmod(0o700)
        remarks = FORMATS[form].write(model, out)
    except UserError:
        with suppress(OSError):
            if new:
                out.rmdir()  # if it is empty: so that a mended command can use its name
        raise
    write_pieces(out / "README.md", [text])
    return remarks
