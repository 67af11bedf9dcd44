"""RDF files, parsed by pyoxigraph: N-Triples, Turtle, N-Quads, TriG, RDF/XML and JSON-LD.

Names are full IRIs, exactly as the file has them once prefixes, base and escapes are resolved. Unicode is not
normalised: IRIs that differ in a character are different in RDF, and alignment is by exact name. Rules for the rest:

    literals      dropped and counted; or kept, as entities named as N-Triples writes them: "1"^^<datatype>, "a"@en
    blank nodes   named by numbers, inside their file only (`FileRules.blank_nodes`)
    triple terms  triples about triples (RDF 1.2, once RDF-star) are left out and counted
    relative IRIs refused unless the file declares a base: a base of ours would tell where the file lies
    contexts      of JSON-LD must stand in the file: nothing is ever fetched

A parser's own message quotes what it has read, so only its line and column are told.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NoReturn

from secure_kg.data.readers.interface import CHUNK, BlankNodes, Chunk, FileRules, LeftOut, Reader, refuse
from secure_kg.data.readers.json_guard import GuardedJson
from secure_kg.data.readers.streams import ByteStream, open_stream
from secure_kg.data.readers.xml_guard import GuardedXml

TITLES: Final = {
    "N_TRIPLES": "N-Triples",
    "TURTLE": "Turtle",
    "N_QUADS": "N-Quads",
    "TRIG": "TriG",
    "RDF_XML": "RDF/XML",
    "JSON_LD": "JSON-LD",
}
_NO_SCHEME: Final = "secure-kg-no-base:"
_NO_BASE: Final = f"{_NO_SCHEME}//none/"
"""JSON-LD leaves out relative IRIs without a word. With this base they show, and are refused. Its scheme is invented,
because an IRI that lacks nothing but the scheme (`//host/path`) takes this one."""
_OPEN: Final = b"<<("
_MOST_OPEN: Final = 3000
"""Triple terms may be inside each other; at some 8,000 the parser runs out of stack, and the process ends."""
_PIECE: Final = 1 << 15
# What to say where a parser's message begins or ends so; none of these words are of the file.
_REASONS: Final = {
    "No scheme found in an absolute IRI": "a relative IRI, and no base is declared",
    "has not been declared": "a prefix that is not declared",
    "Invalid UTF-8": "not valid UTF-8",
    "LoadDocumentCallback": "a context that lies elsewhere; nothing is fetched, so put it into the file",
}


def rdf_reader(form: str) -> Reader:
    """The reader of a format, by its name in TITLES."""
    return partial(_read, form=form)


class _WatchedTerms:
    """A stream that ends the reading if too many triple terms begin that were not read as such."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._begun, self._last = stream, 0, b""
        self.read_terms = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, _PIECE) if size > 0 else _PIECE)
        self._begun += (self._last + data).count(_OPEN)
        self._last = data[-2:]
        if self._begun - self.read_terms > _MOST_OPEN:
            refuse(self._stream.path, f"more than {_MOST_OPEN} triple terms inside each other", self._stream.lines + 1)
        return data


def _read(path: Path, rules: FileRules, form: str) -> Iterator[Chunk]:
    import pyoxigraph

    with open_stream(path) as stream:
        guarded = GuardedXml(stream) if form == "RDF_XML" else None
        json = GuardedJson(stream) if form == "JSON_LD" else None
        watched = _WatchedTerms(stream)
        base = _NO_BASE if form == "JSON_LD" else None
        try:
            parser: Any = pyoxigraph.parse(
                guarded or json or watched,  # type: ignore[arg-type]  # of a file in binary mode it needs `read` only
                format=getattr(pyoxigraph.RdfFormat, form),
                base_iri=base,
            )
            blank = rules.blank_nodes()
            while (chunk := _chunk(islice(parser, CHUNK), rules, blank, watched)) is not None:
                if base is not None:
                    _refuse_relative(path, chunk)
                chunk.prefixes = dict(parser.prefixes)
                yield chunk
        except SyntaxError as error:
            _refuse(path, TITLES[form], error, guarded)
        except MemoryError:
            refuse(path, "a single name or literal of more than 16 MiB", stream.lines + 1)


def _chunk(quads: Iterable[Any], rules: FileRules, blank: BlankNodes, watched: _WatchedTerms) -> Chunk | None:
    """The next triples; None if there are none. One loop, for it runs once for each triple of a large file."""
    from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode

    keep, by_graph = rules.reading.literals == "keep", rules.graphs
    heads: list[str] = []
    relations: list[str] = []
    tails: list[str] = []
    graphs: list[str] = []
    literals = terms = 0
    some = False
    for subject, predicate, obj, graph in quads:
        some = True
        kind = type(obj)
        if kind is NamedNode:
            tail = obj.value
        elif kind is BlankNode:
            if type(subject) is BlankNode:
                blank[subject.value]  # heads are numbered before tails
            tail = blank[obj.value]
        elif kind is Literal:
            if not keep:
                literals += 1
                continue
            tail = str(obj)
        else:
            terms += 1
            watched.read_terms += _depth(obj)
            continue
        heads.append(blank[subject.value] if type(subject) is BlankNode else subject.value)
        relations.append(predicate.value)
        tails.append(tail)
        if by_graph:
            of = type(graph)
            graphs.append("" if of is DefaultGraph else blank[graph.value] if of is BlankNode else graph.value)
    left_out = LeftOut(literals=literals, triple_terms=terms)
    return Chunk(heads, relations, tails, graphs if by_graph else None, left_out) if some else None


def _depth(term: Any) -> int:
    """How many triple terms are inside each other."""
    depth = 0
    while hasattr(term, "predicate"):
        term, depth = term.object, depth + 1
    return depth


def _refuse_relative(path: Path, chunk: Chunk) -> None:
    columns = (chunk.heads, chunk.relations, chunk.tails, chunk.graphs or [])
    kinds = (name.rpartition('"')[2] for name in chunk.tails if name.startswith('"'))  # what follows a literal's text
    if any(name.startswith(_NO_SCHEME) for names in columns for name in names) or any(
        kind.startswith(f"^^<{_NO_SCHEME}") for kind in kinds
    ):
        refuse(path, "a relative IRI, and no base is declared")


def _refuse(path: Path, title: str, error: SyntaxError, guarded: GuardedXml | None) -> NoReturn:
    message = str(error.msg)
    reason = next((said for found, said in _REASONS.items() if found in message), f"not valid {title}")
    if guarded is not None:
        refuse(path, reason, guarded.line)
    refuse(path, reason, error.lineno, error.offset)
