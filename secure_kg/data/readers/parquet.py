"""Parquet files: columns by name as in CSV, of text or of whole numbers, read some rows at a time.

Parquet packs its columns itself. Its own account of their unpacked size, and the bytes that really come, are held to
the same bound as those of packed files (`streams.py`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from secure_kg.data.readers.columns import find_columns
from secure_kg.data.readers.interface import CHUNK, Chunk, FileRules, refuse
from secure_kg.data.readers.streams import FREE, RATIO, arrow, open_stream


def read_parquet(path: Path, rules: FileRules) -> Iterator[Chunk]:
    """Names as they stand in the columns."""
    pyarrow = arrow(path)
    with open_stream(path):  # refuses what is no regular file
        bound = max(FREE, RATIO * path.stat().st_size)
    try:
        yield from _chunks(path, rules, pyarrow, bound)
    except (pyarrow.ArrowException, OSError, MemoryError):
        refuse(path, "not a Parquet file, or a damaged one")


def _chunks(path: Path, rules: FileRules, pyarrow: Any, bound: int) -> Iterator[Chunk]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if any(name.isdigit() for name in rules.reading.chosen):
            refuse(path, "--columns: columns of a Parquet file have names")
        columns = find_columns(path, names, rules.reading.chosen, 1, bare=False)
        if columns.kind == "apoc":
            refuse(path, "an export of apoc has rows of nodes and is read as CSV or as lines of JSON")
        wanted = [names[place] for place in columns.places]
        _check_types(path, file.schema_arrow, wanted, pyarrow)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > bound:
            refuse(path, f"unpacks to more than {RATIO} times its size")
        total, row = 0, 1
        for batch in file.iter_batches(batch_size=CHUNK, columns=wanted):
            parts = [batch.column(name).cast(pyarrow.string()) for name in wanted]
            total += sum(part.nbytes for part in parts)
            if total > bound:
                refuse(path, f"unpacks to more than {RATIO} times its size")
            heads, relations, tails = (part.to_pylist() for part in parts)
            for number, names_of_row in enumerate(zip(heads, relations, tails, strict=True), start=row):
                if not all(name is not None and name.strip() for name in names_of_row):
                    refuse(path, f"row {number} has no head, no relation or no tail")
            row += len(heads)
            yield Chunk(rules.own_names(heads), relations, rules.own_names(tails))


def _check_types(path: Path, schema: Any, wanted: list[str], pyarrow: Any) -> None:
    kinds = pyarrow.types
    for name in wanted:
        kind = schema.field(name).type
        if kinds.is_dictionary(kind):
            kind = kind.value_type
        if not (kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_integer(kind)):
            refuse(path, "a column of head, relation or tail holds neither text nor whole numbers")
