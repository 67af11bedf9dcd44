"""Parquet files: columns by name as in CSV, of text or of whole numbers, read some rows at a time.

Parquet packs its columns itself: a dictionary has each text once, and a byte may stand for thousands of rows. So texts
are read as dictionaries and never spread out: rows share the texts. The file's own account of its unpacked size, and
the length of the names that really come, are held to the same bound as packed files (`streams.py`). Encodings that
build a text out of the one before it are refused, because their account says nothing of what they unpack to.
An account that lies about the size of pages is not found out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from secure_kg.data.readers.columns import find_columns
from secure_kg.data.readers.interface import CHUNK, Chunk, FileRules, refuse
from secure_kg.data.readers.streams import FREE, RATIO, arrow, open_stream

_ENCODINGS: Final = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def read_parquet(path: Path, rules: FileRules) -> Iterator[Chunk]:
    """Names as they stand in the columns."""
    pyarrow = arrow(path)
    with open_stream(path):  # refuses what is no regular file
        bound = max(FREE, RATIO * path.stat().st_size)
    try:
        yield from _chunks(path, rules, pyarrow, bound)
    except UnicodeDecodeError:
        refuse(path, "a name is not valid UTF-8")
    except (pyarrow.ArrowException, OSError, MemoryError):
        refuse(path, "not a Parquet file, or a damaged one")


def _chunks(path: Path, rules: FileRules, pyarrow: Any, bound: int) -> Iterator[Chunk]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        account, schema = file.metadata, file.schema_arrow
    if any(name.isdigit() for name in rules.reading.chosen):
        refuse(path, "--columns: columns of a Parquet file have names")
    columns = find_columns(path, schema.names, rules.reading.chosen, 1, bare=False)
    if columns.kind == "apoc":
        refuse(path, "an export of apoc has rows of nodes and is read as CSV or as lines of JSON")
    wanted = [schema.names[place] for place in columns.places]
    _check_types(path, schema, wanted, pyarrow)
    _check_account(path, account, wanted, bound)
    total, row = 0, 1
    with parquet.ParquetFile(path, metadata=account, read_dictionary=wanted) as file:
        for batch in file.iter_batches(batch_size=CHUNK, columns=wanted, use_threads=False):
            heads, relations, tails = (_names(path, batch.column(name), rules, row, pyarrow) for name in wanted)
            total += sum(sum(map(len, names)) for names in (heads, relations, tails))
            if total > bound:
                refuse(path, f"unpacks to more than {RATIO} times its size")
            row += len(heads)
            yield Chunk(heads, relations, tails)


def _names(path: Path, column: Any, rules: FileRules, first: int, pyarrow: Any) -> list[str]:
    """Names of a column's rows; equal ones are one string. `first`: the number of the first row."""
    if not pyarrow.types.is_dictionary(column.type):
        column = column.cast(pyarrow.string()).dictionary_encode()
    used = column.indices.unique()
    texts = column.dictionary.take(used).to_pylist()
    used, places = used.to_pylist(), column.indices.to_pylist()
    if not all(text and text.strip() for text in texts):
        lacking = {place for place, text in zip(used, texts, strict=True) if not (text and text.strip())}
        number = next(number for number, place in enumerate(places, start=first) if place in lacking)
        refuse(path, f"row {number} has no head, no relation or no tail")
    by_place = dict(zip(used, rules.own_names(texts), strict=True))
    return list(map(by_place.__getitem__, places))


def _check_account(path: Path, account: Any, wanted: list[str], bound: int) -> None:
    """What the file says of itself: unpacked sizes, and the encodings of texts."""
    groups = [account.row_group(number) for number in range(account.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > bound:
        refuse(path, f"unpacks to more than {RATIO} times its size")
    for group in groups:
        for column in map(group.column, range(group.num_columns)):
            text = column.path_in_schema in wanted and column.physical_type == "BYTE_ARRAY"
            if text and not set(column.encodings) <= _ENCODINGS:
                refuse(path, "texts in an encoding that is not read; write them plainly or with dictionaries")


def _check_types(path: Path, schema: Any, wanted: list[str], pyarrow: Any) -> None:
    kinds = pyarrow.types
    for name in wanted:
        kind = schema.field(name).type
        if kinds.is_dictionary(kind):
            kind = kind.value_type
        if not (kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_integer(kind)):
            refuse(path, "a column of head, relation or tail holds neither text nor whole numbers")
