"""Readers by the names of files."""

import os
from pathlib import Path
from typing import Final

from secure_kg.data.readers.apoc_json import read_apoc_json
from secure_kg.data.readers.delimited import read_csv
from secure_kg.data.readers.interface import Reader
from secure_kg.data.readers.parquet import read_parquet
from secure_kg.data.readers.rdf import rdf_reader
from secure_kg.data.readers.streams import PACKED
from secure_kg.data.readers.tsv import read_tsv

_TEXT: Final[dict[str, Reader]] = {
    ".tsv": read_tsv,
    ".txt": read_tsv,
    ".csv": read_csv,
    ".nt": rdf_reader("N_TRIPLES"),
    ".ttl": rdf_reader("TURTLE"),
    ".nq": rdf_reader("N_QUADS"),
    ".trig": rdf_reader("TRIG"),
    ".rdf": rdf_reader("RDF_XML"),
    ".owl": rdf_reader("RDF_XML"),
    ".jsonld": rdf_reader("JSON_LD"),
    ".json": read_apoc_json,
    ".jsonl": read_apoc_json,
}
READERS: Final[dict[str, Reader]] = {
    **_TEXT,
    **{suffix + packed: reader for suffix, reader in _TEXT.items() for packed in PACKED},
    ".parquet": read_parquet,
}
"""By how the name ends."""
QUADS: Final = tuple(suffix + packed for suffix in (".nq", ".trig", ".jsonld") for packed in ("", *PACKED))
"""Of formats with named graphs."""
SUFFIXES: Final = tuple(READERS)
IN_BRIEF: Final = f"{', '.join(_TEXT)} (also {', '.join(PACKED)}), .parquet"


def suffix_of(path: Path) -> str | None:
    """How the name ends, if there is a reader for it; nothing is opened."""
    name = path.name.lower()
    return max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default=None)


def reader_of(path: Path) -> Reader:
    """The reader of a file; of triples by tabs if its name does not say."""
    return READERS[suffix_of(path) or ".tsv"]


def graph_files(folder: Path) -> list[Path]:
    """The files in a folder that some reader reads, by their names, in order."""
    return sorted(
        folder / name for name in os.listdir(folder) if suffix_of(Path(name)) and os.path.isfile(folder / name)
    )
