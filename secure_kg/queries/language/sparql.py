"""Questions in SPARQL: SELECT queries of one variable over basic graph patterns, as formulas.

    SELECT ?drug WHERE {
      ?drug <treats> ?d . ?d <associated> "BRCA1"
      FILTER NOT EXISTS { ?drug <interacts> "warfarin" }
    }

rdflib parses (pyproject.toml, extra `sparql`); nothing is evaluated by it and nothing is fetched. UNION, MINUS, FILTER
with EXISTS, NOT EXISTS, = and !=, VALUES of one variable, and paths of ^, / and | are understood. Everything else is
refused by its name. An IRI stands for the name that it spells, relative ones too; so does a plain string, since many
graphs have names that are no IRIs.

rdflib keeps no places of what it has parsed. Errors in the grammar have their own line and column, what is not
understood those of its keyword; others have those where a variable of the part first occurs.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from secure_kg.foundation.errors import UserError
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.language.formula import And, Atom, Constant, Formula, Not, Or, Same, Term, Variable
from secure_kg.queries.language.places import MOST_ATOMS, LanguageError, Place, checked_text, place_at
from secure_kg.queries.language.trees import to_query

MOST_SPARQL: Final = 1 << 14
"""Characters of a question: rdflib's parser takes seconds for so many."""
_MOST_BRACKETS: Final = 16
"""Brackets inside each other; the parser's work grows with their square."""
_MOST_PARTS: Final = 200
"""Groups that follow each other, and filters; rdflib nests them, so they cost frames of the stack."""

UNDERSTOOD: Final = (
    "SELECT of one variable, DISTINCT, triples, blank nodes, UNION, MINUS, VALUES of one variable, FILTER with EXISTS, "
    "NOT EXISTS, =, !=, &&, || and !, and paths of ^, / and |"
)
"""As docs/queries.md has it."""
_NAMES: Final = {
    "LeftJoin": "OPTIONAL",
    "Graph": "GRAPH",
    "ServiceGraphPattern": "SERVICE",
    "Extend": "BIND or an expression in SELECT",
    "OrderBy": "ORDER BY",
    "Slice": "LIMIT or OFFSET",
    "Group": "GROUP BY",
    "AggregateJoin": "an aggregate",
    "Project": "a subquery",
}
_WORDS: Final = {
    "LeftJoin": "OPTIONAL",
    "Graph": "GRAPH",
    "ServiceGraphPattern": "SERVICE",
    "Extend": "BIND|AS",
    "OrderBy": "ORDER",
    "Slice": "LIMIT|OFFSET",
    "Group": "GROUP",
    "AggregateJoin": "COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT",
}
"""By which such a part begins."""
_NO_WORDS: Final = r"""<[^<>\s]*>|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|#[^\n]*|[?$]\w+|\w*:\w*"""
"""IRIs, strings, comments, variables, prefixed names: what they spell is no keyword."""


def read_sparql(text: str) -> NamedQuery:
    """The query of one SELECT. Raises LanguageError; UserError if rdflib is not installed."""
    text = checked_text(text)
    _check_size(text)
    root = _parsed(text)
    place = place_at(text, len(text) - len(text.lstrip()))
    if root.name != "SelectQuery":
        raise LanguageError(place, "not a SELECT query")
    if root.datasetClause:
        raise LanguageError(_place_of("FROM", text) or place, "FROM is not understood")
    if len(root.PV) != 1:
        raise LanguageError(place, f"SELECT must have one variable, not {len(root.PV)}")
    pattern = root.p
    while pattern.name in ("Distinct", "Reduced"):
        pattern = pattern.p
    translation = _Translation(text, place)
    if pattern.name != "Project":
        raise translation.unknown(pattern)
    return to_query(str(root.PV[0]), translation.pattern(pattern.p, 0), place)


def _check_size(text: str) -> None:
    if len(text) > MOST_SPARQL:
        raise LanguageError(Place(1, 1), f"more than {MOST_SPARQL:,} characters")
    depth = 0
    for found in re.finditer(r"[\[({]|[\])}]", text):
        depth += 1 if found[0] in "[({" else -1
        if depth > _MOST_BRACKETS:
            raise LanguageError(place_at(text, found.start()), f"more than {_MOST_BRACKETS} brackets inside each other")


def _parsed(text: str) -> Any:
    try:
        from pyparsing import ParseBaseException
        from rdflib.plugins.sparql.algebra import translateQuery
        from rdflib.plugins.sparql.parser import parseQuery
    except ImportError:
        raise UserError("questions in SPARQL need rdflib; install secure-kg[sparql]") from None
    try:
        return translateQuery(parseQuery(text)).algebra
    except ParseBaseException as problem:
        raise LanguageError(place_at(text, problem.loc), "not a SPARQL query from here on") from None
    except RecursionError:
        # Its grammar calls itself for every triple of a group, too: some sixty of them fit on Python's stack.
        raise LanguageError(Place(1, 1), "too many triples in a group, or too deeply nested, for the parser") from None
    except Exception:  # rdflib raises bare ones, for prefixes that are not declared and for variables out of scope
        raise LanguageError(Place(1, 1), "no meaning in SPARQL; is every prefix declared?") from None


def _place_of(words: str, text: str) -> Place | None:
    """Where a keyword stands: after the last group, where modifiers are, or else the first of them."""
    found = [match for match in re.finditer(rf"{_NO_WORDS}|\b({words})\b", text, re.IGNORECASE) if match[1]]
    after = [match for match in found if match.start() > text.rfind("}")]
    return place_at(text, (after or found)[0].start()) if found else None


class _Translation:
    """One question: patterns of rdflib's algebra to formulas."""

    def __init__(self, text: str, place: Place) -> None:
        self._text, self._place = text, place
        self._fresh, self._atoms = 0, 0
        self._body = max(text.find("{"), 0)

    def unknown(self, node: Any) -> LanguageError:
        name = getattr(node, "name", "")
        place = (_place_of(_WORDS[name], self._text) if name in _WORDS else None) or self._place
        return LanguageError(place, f"{_NAMES.get(name, 'a part')} is not understood; there are {UNDERSTOOD}")

    def pattern(self, node: Any, depth: int) -> Formula:
        if depth > _MOST_PARTS:
            raise LanguageError(self._place, f"more than {_MOST_PARTS} groups or filters")
        match node.name:
            case "BGP":
                return self._all([self._triple(*triple) for triple in node.triples])
            case "Join":
                return self._all([self.pattern(node.p1, depth + 1), self.pattern(node.p2, depth + 1)])
            case "Union":
                return Or((self.pattern(node.p1, depth + 1), self.pattern(node.p2, depth + 1)), self._place)
            case "Minus":
                removed = self.pattern(node.p2, depth + 1)
                return self._all([self.pattern(node.p1, depth + 1), Not(removed, self._of(removed))])
            case "Filter":
                return self._all([self.pattern(node.p, depth + 1), self._condition(node.expr, depth + 1)])
            case "ToMultiSet" if node.p.name == "values":
                return self._values(node.p.res)
            case "ToMultiSet":
                raise self.unknown(node.p)
        raise self.unknown(node)

    def _condition(self, node: Any, depth: int) -> Formula:
        from rdflib.plugins.sparql.algebra import translateGroupGraphPattern

        match getattr(node, "name", ""):
            case "Builtin_NOTEXISTS" | "Builtin_EXISTS" as name:
                inner = self.pattern(translateGroupGraphPattern(node.graph), depth + 1)
                return Not(inner, self._of(inner)) if name == "Builtin_NOTEXISTS" else inner
            case "ConditionalAndExpression":
                return self._all([self._condition(part, depth + 1) for part in (node.expr, *node.other)])
            case "ConditionalOrExpression":
                parts = tuple(self._condition(part, depth + 1) for part in (node.expr, *node.other))
                return Or(parts, self._place)
            case "UnaryNot":
                inner = self._condition(node.expr, depth + 1)
                return Not(inner, self._of(inner))
            case "RelationalExpression" if node.op in ("=", "!="):
                same = self._same(node.expr, node.other)
                return same if node.op == "=" else Not(same, same.place)
        raise self.unknown(node)

    def _values(self, rows: list[dict[Any, Any]]) -> Formula:
        choices = [self._same(*next(iter(row.items()))) for row in rows if len(row) == 1]
        if not choices or len(choices) < len(rows):
            raise LanguageError(self._place, "VALUES must name entities for one variable")
        return Or(tuple(choices), self._place) if len(choices) > 1 else choices[0]

    def _same(self, one: Any, other: Any) -> Same:
        terms = self._term(one), self._term(other)
        match terms:
            case (Variable() as variable, Constant() as entity) | (Constant() as entity, Variable() as variable):
                return Same(variable, entity, self._where(variable))
        raise LanguageError(self._place, "a comparison must be of one variable and one entity")

    def _triple(self, subject: Any, predicate: Any, target: Any) -> Formula:
        return self._path(predicate, self._term(subject), self._term(target))

    def _path(self, path: Any, first: Term, second: Term) -> Formula:
        from rdflib.paths import AlternativePath, InvPath, SequencePath
        from rdflib.term import URIRef

        place = self._where(first, second)
        if isinstance(path, URIRef):
            self._atoms += 1
            if self._atoms > MOST_ATOMS:
                raise LanguageError(place, f"a question of more than {MOST_ATOMS:,} atoms")
            return Atom(str(path), first, second, place)
        if isinstance(path, InvPath):
            return self._path(path.arg, second, first)
        if isinstance(path, AlternativePath):
            return Or(tuple(self._path(part, first, second) for part in path.args), place)
        if isinstance(path, SequencePath):
            stops = [first, *self._between(len(path.args) - 1), second]
            return self._all([self._path(part, *stops[n : n + 2]) for n, part in enumerate(path.args)])
        raise LanguageError(place, "a relation must be an IRI, or a path of ^, / and |")

    def _between(self, number: int) -> Iterator[Variable]:
        for _ in range(number):
            self._fresh += 1
            yield Variable(f"/{self._fresh}")  # nobody can write such a name

    def _term(self, term: Any) -> Term:
        from rdflib.term import BNode, Literal, URIRef
        from rdflib.term import Variable as SparqlVariable

        if isinstance(term, SparqlVariable):
            return Variable(str(term))
        if isinstance(term, BNode):
            return Variable(f"_:{term}")
        plain = isinstance(term, Literal) and term.language is None and term.datatype is None
        if (isinstance(term, URIRef) or plain) and str(term):
            return Constant(str(term))
        raise LanguageError(self._place, "an entity must be an IRI or a plain string that is not empty")

    def _all(self, parts: list[Formula]) -> Formula:
        """All parts hold. A group without a part always holds, and means nothing here."""
        kept = [part for part in parts if not (isinstance(part, And) and not part.parts)]
        return kept[0] if len(kept) == 1 else And(tuple(kept), self._place)

    def _of(self, formula: Formula) -> Place:
        return formula.place if formula.variables else self._place

    def _where(self, *terms: Term) -> Place:
        """Where in the pattern the last of the terms' variables first occurs."""
        offsets = []
        for term in terms:
            if isinstance(term, Variable):
                named = re.compile(rf"(?:[?$]|(?=_:)){re.escape(term.name)}\b")
                offsets += [found.start() for found in (named.search(self._text, self._body),) if found]
        return place_at(self._text, max(offsets)) if offsets else self._place
