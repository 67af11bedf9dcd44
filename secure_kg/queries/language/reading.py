"""The front door of the language: a text, a file or an option becomes queries by name."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from secure_kg.data.triples import shown
from secure_kg.queries.form import NamedQuery, QueryError
from secure_kg.queries.language.parser import parse
from secure_kg.queries.language.places import LanguageError, Place
from secure_kg.queries.language.trees import to_query

MOST_BYTES: Final = 1 << 20
"""Of a file with questions. Ten thousand of them fit in."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query of a text, its name there if it has one, and where it begins."""

    query: NamedQuery
    name: str | None
    place: Place


def read_questions(text: str) -> list[Question]:
    """All questions of a text in the toolkit's own language. Raises LanguageError."""
    return [Question(to_query(one.answer, one.formula, one.place), one.name, one.place) for one in parse(text)]


def read_question(text: str) -> NamedQuery:
    """The one question of a text, such as the value of an option."""
    questions = read_questions(text)
    if not questions:
        raise LanguageError(Place(1, 1), "no question")
    if len(questions) > 1:
        raise LanguageError(questions[1].place, "a second question; one was expected")
    return questions[0].query


def read_question_file(path: Path, *, sparql: bool = False) -> list[Question]:
    """All questions of a UTF-8 file; one that ends in .rq or .sparql, or is said to, holds one question in SPARQL."""
    text = _read(path)
    try:
        if sparql or path.suffix.lower() in (".rq", ".sparql"):
            from secure_kg.queries.language.sparql import read_sparql  # rdflib is an extra

            return [Question(read_sparql(text), None, Place(1, 1))]
        found = read_questions(text)
    except QueryError as problem:
        raise QueryError(f"{shown(path)}, {problem}") from None
    if not found:
        raise QueryError(f"{shown(path)}: no question")
    return found


def _read(path: Path) -> str:
    if os.path.isdir(path):
        raise QueryError(f"{shown(path)}: is a folder, not a file")
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise QueryError(f"{shown(path)}: cannot be read ({error.strerror})") from None
    if len(data) > MOST_BYTES:
        raise QueryError(f"{shown(path)}: larger than {MOST_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise QueryError(f"{shown(path)}, {Place(line, column)}: not valid UTF-8") from None
