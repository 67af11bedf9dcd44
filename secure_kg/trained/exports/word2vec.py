"""Export as word2vec text: one line for the sizes, then one line for each name with its row.

A token of that format holds no blanks. So blanks, characters that cannot be seen and `%` are written as in URLs, by
their UTF-8 bytes: `New York` is `New%20York`. No two names become one, and `urllib.parse.unquote` gives them back.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from secure_kg.trained.client_model import ClientModel
from secure_kg.trained.exports.files import numbers, write_pieces

_SUSPECT: Final = re.compile(r"[^!-$&-~]")


def export_word2vec(model: ClientModel, out: Path) -> list[str]:
    """`entities.word2vec.txt`, and `relations.word2vec.txt` where a relation has one row."""
    tables, graph = model.scorer.tables(), model.graph
    named = {"entities": (tables["entity"], graph.entities), "relations": (tables["relation"], graph.relations)}
    written = [kind for kind, (rows, names) in named.items() if len(rows) == len(names)]
    for kind in written:
        rows, names = named[kind]
        write_pieces(out / f"{kind}.word2vec.txt", _lines(names, rows))
    return [] if len(written) == len(named) else ["without relations, which have two rows each"]


def _lines(names: Sequence[str], rows: Any) -> Iterator[str]:
    yield f"{len(rows)} {rows.shape[1]}\n"
    for name, row in zip(names, rows, strict=True):
        yield f"{token(name)} {numbers(row, ' ')}\n"


def token(name: str) -> str:
    """A name without blanks, from which it can be read back."""
    return _SUSPECT.sub(lambda found: _shown(found[0]), name)


def _shown(letter: str) -> str:
    if letter != "%" and letter.isprintable() and not letter.isspace():
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))
