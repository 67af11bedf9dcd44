"""The toolkit's own language: what a text means, what is refused and where, and that every query survives writing."""

import contextlib
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.queries.form import (
    Anchor,
    Intersection,
    NamedQuery,
    Negation,
    Projection,
    QueryError,
    Union,
    translate,
)
from secure_kg.queries.language.places import LanguageError
from secure_kg.queries.language.reading import read_question, read_question_file, read_questions
from secure_kg.queries.language.writing import to_text
from secure_kg.queries.normal import canonical, disjuncts, text
from secure_kg.queries.structures import STRUCTURES, read_row, type_of
from tests.support.small_queries import queries

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(queries(names, names, 6), st.none() | names)
@settings(max_examples=150)
def test_every_query_is_read_as_it_was_written(query: NamedQuery, name: str | None) -> None:
    written = to_text(query, name)
    assert "\n" not in written
    (found,) = read_questions(written)
    assert canonical(found.query) == canonical(query)
    assert found.name == name


@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_named_type_keeps_its_type(kind: str) -> None:
    ids = read_row(STRUCTURES[kind], range(10))
    named = translate(ids, str, "r{}".format)
    assert type_of(read_question(to_text(named))) == kind


def p(relation: str, of: NamedQuery | str, inverse: bool = False) -> NamedQuery:
    return Projection(relation, Anchor(of) if isinstance(of, str) else of, inverse)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ('?drug : treats(?drug, ?d) & associated(?d, "BRCA1")', p("treats", p("associated", "BRCA1", True), True)),
        ("?x : r(a, ?x)", p("r", "a")),
        ('?x: r(?x,"a")&s("b",?x)', Intersection((p("r", "a", True), p("s", "b")))),
        ("?x : r(a, ?x) | s(b, ?x) & t(c, ?x)", Union((p("r", "a"), Intersection((p("s", "b"), p("t", "c")))))),
        ("?x : r(a, ?x) & !s(b, ?x)", Intersection((p("r", "a"), Negation(p("s", "b"))))),
        ("?x : r(a, ?x) & not (s(b, ?x))", Intersection((p("r", "a"), Negation(p("s", "b"))))),
        ("?x : !not r(a, ?x)", p("r", "a")),
        ('?x : r(?y, ?x) & (?y = "a" | ?y = b)', p("r", Union((Anchor("a"), Anchor("b"))))),
        ("?x : ?x = a", Anchor("a")),
        ("?x : r(?y, ?x) & !s(?y, a)", p("r", Negation(p("s", "a", True)))),
        # Alternatives over two variables are multiplied out.
        (
            "?x : (r(?x, ?y) | s(?x, ?y)) & t(?y, a)",
            Union((p("r", p("t", "a", True), True), p("s", p("t", "a", True), True))),
        ),
        # A variable of negated parts alone is each one's own.
        (
            "?x : q(a, ?x) & !(r(?y, ?x) & s(b, ?y)) & !(t(?y, ?x) & s(c, ?y))",
            Intersection((p("q", "a"), Negation(p("r", p("s", "b"))), Negation(p("t", p("s", "c"))))),
        ),
        ("?x : r(?y, ?x) & s(a, ?y) | t(?y, ?x) & s(b, ?y)", Union((p("r", p("s", "a")), p("t", p("s", "b"))))),
        # Names of any kind.
        (r'?x : "not"("a \"b\" \\ \n \u00e9 \U0001F600 # no comment", ?x)', p("not", 'a "b" \\ \n é 😀 # no comment')),
        ("?é1 : größe(a.b-c, ?é1) # a comment (", p("größe", "a.b-c")),
        ("\ufeff?x\r\n:\r\n\tr(a, # why\r\n ?x)", p("r", "a")),
    ],
)
def test_what_a_question_means(question: str, expected: NamedQuery) -> None:
    assert text(read_question(question)) == text(expected)


def test_a_file_holds_several_questions_with_and_without_names(tmp_path: Path) -> None:
    path = tmp_path / "questions.kgq"
    path.write_text(
        '# two with a name\nrepurposing = ?x : treats(?x, ?d)\n  & associated(?d, "BRCA1")\n'
        '"a name" = ?x : r(a, ?x)\n?y : s(b, ?y)\n'
    )
    found = read_question_file(path)
    assert [(one.name, one.place.line) for one in found] == [("repurposing", 2), ("a name", 4), (None, 5)]
    assert type_of(found[0].query) == "2p"


def test_the_examples_of_the_document_are_questions() -> None:
    document = (Path(__file__).parents[4] / "docs" / "queries.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    inline, several, error, _ = blocks
    assert type_of(read_question(inline)) == "2p"
    assert [one.name for one in read_questions(several)] == ["repurposing", "old and new"]
    with pytest.raises(LanguageError) as caught:
        read_question('?x : r(?y, ?x) & s(?y, ?x) & t("a", ?y)')
    assert f"{caught.value}\n" == error


@pytest.mark.parametrize(
    ("question", "where", "why"),
    [
        ("", "1, column 1", "no question"),
        ("# only a comment", "1, column 1", "no question"),
        ("?x", "1, column 3", 'expected ":" after the answer variable before the text ends'),
        ("r(a, ?x)", "1, column 2", 'expected "=" after the name of a question'),
        ("?x :", "1, column 5", "expected a relation"),
        ("?x : r(a ?x)", "1, column 10", 'expected "," between'),
        ("?x : r(a, ?x", "1, column 13", r'expected "\)" after the two ends'),
        ("?x : r a, ?x)", "1, column 8", r'expected "\(" after a relation'),
        ("?x : (r(a, ?x)", "1, column 15", r'expected "\)" at the end'),
        ("?x : r(a, ?x))", "1, column 14", "expected a question"),
        ("?x : r(a, ?x) &\n\n  & s(b, ?x)", "3, column 3", "expected a relation"),
        ("?x : r(a, ?x) ?y : r(a, ?y)", "1, column 15", "a second question"),
        ('?x :\n r("a, ?x)', "2, column 4", "quotes that do not end"),
        ('?x : r("a\nb", ?x)', "1, column 8", "quotes that do not end"),
        (r'?x : r("a\q", ?x)', "1, column 10", "an unknown escape"),
        (r'?x : r("\ud800", ?x)', "1, column 9", "an unknown escape"),
        (r'?x : r("\UFFFFFFFF", ?x)', "1, column 9", "an unknown escape"),
        (r'?x : r("ab\u12", ?x)', "1, column 11", "an unknown escape"),
        ('?x : r("", ?x)', "1, column 8", "an empty name"),
        ("?x : r(?1, ?x)", "1, column 8", "a variable needs a name"),
        ("?x : r(a, ?x) ; s(b, ?x)", "1, column 15", "no part of the language"),
        ("?x : r(a\0, ?x)", "1, column 9", "a control character"),
        ("?x : r(a\x85, ?x)", "1, column 9", "a control character"),
        ("?x : r(a,\r?x)", "1, column 10", "a control character"),
        ("?x : r(a\udcff, ?x)", "1, column 9", "not valid Unicode"),
        ("?x = a", "1, column 4", 'expected ":"'),
        ("?x : ?x = ?y", "1, column 11", "expected the name of an entity"),
        ("?x : ?x & r(a, ?x)", "1, column 9", 'expected "=" after a variable'),
        # No trees.
        ("?x : r(a, ?y)", "1, column 1", "the answer variable does not occur"),
        ("?x : r(a, ?x) & s(b, ?y)", "1, column 17", "not connected to the answer variable"),
        ("?x : r(a, ?x) & s(b, c)", "1, column 17", "not connected to the answer variable"),
        ("?x : r(a, ?x) | s(b, ?y)", "1, column 17", "not connected to the answer variable"),
        ("?x : r(a, ?x) & !s(b, ?y)", "1, column 17", "not connected to the answer variable"),
        ("?x : r(?y, ?x)", "1, column 6", "leads to no named entity"),
        ("?x : r(a, ?x) & s(?y, ?x)", "1, column 17", "leads to no named entity"),
        ("?x : (r(a, ?x) | s(?y, ?x)) & t(?x, ?y)", "1, column 31", "leads to no named entity"),
        ("?x : r(?x, ?x)", "1, column 6", "ties a variable to itself"),
        ("?x : r(?y, ?x) & s(?y, ?x) & t(a, ?y)", "1, column 18", "closes a circle"),
        ("?x : r(?y, ?x) & s(?z, ?y) & t(?x, ?z) & q(a, ?z)", "1, column 30", "closes a circle"),
        ("?x : r(?y, ?x) & s(a, ?y) & !t(?y, ?x)", "1, column 29", "closes a circle"),
        ("?x : !t(?y, ?x) & s(a, ?y)", "1, column 6", "shares two"),
    ],
)
def test_what_is_refused_and_where(question: str, where: str, why: str) -> None:
    with pytest.raises(LanguageError, match=f"^line {where}: .*{why}") as caught:
        read_question(question)
    assert "\n" not in str(caught.value)


def test_names_of_questions_differ() -> None:
    with pytest.raises(LanguageError, match="line 2, column 1: a name that an earlier"):
        read_questions("q = ?x : r(a, ?x)\nq = ?x : r(b, ?x)")


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_names_that_cannot_be_written_are_refused(name: str) -> None:
    with pytest.raises(QueryError, match="cannot be written"):
        to_text(Anchor(name))


# --- hostile texts ----------------------------------------------------------------------------------------------------


def chain(length: int) -> str:
    links = " & ".join(f"r(?v{n + 1}, ?v{n})" for n in range(length))
    return f"?v0 : {links} & r(a, ?v{length})"


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        ("?x : " + "(" * 10_000 + "r(a, ?x)" + ")" * 10_000, "more than 64 parentheses"),
        ("?x : " + "!" * 10_000 + "r(a, ?x)", "more than 64 parentheses or negations"),
        ("?x : " + "not " * 10_000 + "r(a, ?x)", "more than 64 parentheses or negations"),
        (chain(10_000), "more than 500 atoms"),
        (chain(499), "64 steps deep here"),
        ("?x : " + "r(a, ?x) & " * 100_000, "more than 1,048,576 characters"),
        ("?x : " + " | ".join(["r(a, ?x)"] * 50_000), "more than 500 atoms"),
        ("?x : r(" + "a" * 2_000_000, "more than 1,048,576 characters"),
        (
            "?x : " + " & ".join(f"(r(?x, ?y{n}) | s(?x, ?y{n})) & t(?y{n}, ?z)" for n in range(40)) + " & q(?z, a)",
            "closes a circle|multiply to too many",
        ),
        (
            "?x : " + " & ".join("(r(?x, ?y) | s(?x, ?y))" for _ in range(40)) + " & q(?y, a)",
            "closes a circle",
        ),
        (
            "?x : (" + " | ".join(["r(?x, ?y)"] * 250) + ") & (" + " | ".join(f"s(?y, a{n})" for n in range(250)) + ")",
            "multiply to too many",
        ),
    ],
    ids=[
        "parentheses",
        "negations",
        "words",
        "chain",
        "shorter chain",
        "long",
        "wide",
        "name",
        "ladder",
        "circle",
        "product",
    ],
)
def test_hostile_texts_are_refused_soon(hostile: str, why: str) -> None:
    started = time.process_time()
    with pytest.raises(LanguageError, match=why) as caught:
        read_question(hostile)
    assert len(str(caught.value)) < 200
    assert time.process_time() - started < 5


def test_a_question_whose_normal_form_is_too_large_is_refused_when_that_is_asked_for() -> None:
    query = read_question("?x : " + " & ".join(f"(r(a{n}, ?x) | r(b{n}, ?x))" for n in range(20)))
    with pytest.raises(QueryError, match="1,048,576 queries"):
        disjuncts(query)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x" * 10_000_000, "larger than 1,048,576 bytes"),
        (b"?x : r(a,\n \xff ?x)", "line 2, column 2: not valid UTF-8"),
        (b"?x : r(a,\n ?y)", "line 1, column 1: the answer variable"),
        (b"?x : r(a\x00, ?x)", "line 1, column 9: a control character"),
        (b"# nothing\n", ": no question"),
    ],
)
def test_hostile_files_are_refused_with_their_place(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "questions.kgq"
    path.write_bytes(content)
    with pytest.raises(QueryError, match=why) as caught:
        read_question_file(path)
    assert str(caught.value).startswith(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="is a folder"):
        read_question_file(tmp_path)
    with pytest.raises(QueryError, match="cannot be read"):
        read_question_file(tmp_path / "none")


@given(st.text(alphabet='?xyab r(),&|!:="\\n#\n not'))
@settings(max_examples=200)
def test_any_text_is_read_or_refused(anything: str) -> None:
    with contextlib.suppress(LanguageError):  # and nothing else
        read_questions("?x : " + anything)
