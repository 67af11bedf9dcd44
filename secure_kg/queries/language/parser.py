"""Tokens to formulas, by recursive descent.

    text      = question*
    question  = [name "="] variable ":" either
    either    = both ("|" both)*
    both      = one ("&" one)*
    one       = "!" one | "(" either ")" | name "(" term "," term ")" | variable "=" name
    term      = variable | name

Questions need nothing between them: where one can end, no question can go on with a name or a variable.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from secure_kg.queries.language.formula import And, Atom, Constant, Formula, Not, Or, Same, Term, Variable
from secure_kg.queries.language.places import MOST_ATOMS, MOST_NESTING, LanguageError, Place
from secure_kg.queries.language.tokens import Kind, Token, tokens


@dataclass(frozen=True, slots=True)
class Parsed:
    """One question of a text."""

    name: str | None
    answer: str
    formula: Formula
    place: Place


def parse(text: str) -> list[Parsed]:
    """All questions of a text; their names are different. There may be none."""
    parser = _Parser(tokens(text))
    found: list[Parsed] = []
    names: set[str] = set()
    while not parser.at_end():
        question = parser.question()
        if question.name is not None:
            if question.name in names:
                raise LanguageError(question.place, "a name that an earlier question of the text has")
            names.add(question.name)
        found.append(question)
    return found


class _Parser:
    """Reads on from one token to the next, and no further than it must: a text may be refused at its beginning."""

    def __init__(self, read: Iterator[Token]) -> None:
        self._tokens, self._token = read, next(read)
        self._nesting, self._atoms = 0, 0

    def at_end(self) -> bool:
        return self._token.kind == "end"

    def _is(self, mark: str) -> bool:
        return self._token.kind == "mark" and self._token.text == mark

    def _expected(self, what: str) -> NoReturn:
        found = " before the text ends" if self.at_end() else ""
        raise LanguageError(self._token.place, f"expected {what}{found}")

    def _take(self, kind: Kind, what: str) -> Token:
        token = self._token
        if token.kind != kind:
            self._expected(what)
        self._token = next(self._tokens)
        return token

    def _take_mark(self, mark: str, after: str) -> Token:
        if not self._is(mark):
            self._expected(f'"{mark}" {after}')
        return self._take("mark", mark)

    def question(self) -> Parsed:
        place, name = self._token.place, None
        self._atoms = 0
        if self._token.kind == "name":
            name = self._take("name", "a name").text
            self._take_mark("=", "after the name of a question")
        answer = self._take("variable", "a question, which begins with its answer variable as in ?x : ...").text
        self._take_mark(":", "after the answer variable")
        return Parsed(name, answer, self._either(), place)

    def _either(self) -> Formula:
        place, parts = self._token.place, [self._both()]
        while self._is("|"):
            self._take("mark", "|")
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts), place)

    def _both(self) -> Formula:
        place, parts = self._token.place, [self._one()]
        while self._is("&"):
            self._take("mark", "&")
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts), place)

    def _one(self) -> Formula:
        token = self._token
        if self._is("!") or self._is("("):
            self._nesting += 1
            if self._nesting > MOST_NESTING:
                raise LanguageError(token.place, f"more than {MOST_NESTING} parentheses or negations inside each other")
            self._take("mark", "(")
            inner: Formula = Not(self._one(), token.place) if token.text == "!" else self._either()
            if token.text == "(":
                self._take_mark(")", "at the end of what is in parentheses")
            self._nesting -= 1
            return inner
        self._atoms += 1
        if self._atoms > MOST_ATOMS:
            raise LanguageError(token.place, f"a question of more than {MOST_ATOMS:,} atoms")
        return self._atom(token)

    def _atom(self, token: Token) -> Formula:
        if token.kind == "variable":
            variable = Variable(self._take("variable", "a variable").text)
            self._take_mark("=", "after a variable")
            return Same(variable, Constant(self._take("name", "the name of an entity").text), token.place)
        relation = self._take("name", 'a relation, "(", "!" or a variable').text
        self._take_mark("(", "after a relation")
        first = self._term()
        self._take_mark(",", "between the two ends of a relation")
        second = self._term()
        self._take_mark(")", "after the two ends of a relation")
        return Atom(relation, first, second, token.place)

    def _term(self) -> Term:
        if self._token.kind == "variable":
            return Variable(self._take("variable", "a variable").text)
        return Constant(self._take("name", "a variable or the name of an entity").text)
