"""SPARQL: every part of the subset means what the same question in the toolkit's own language means."""

import re
import sys
import time
from pathlib import Path

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.queries.language.places import LanguageError
from secure_kg.queries.language.reading import read_question, read_question_file
from secure_kg.queries.language.sparql import UNDERSTOOD, read_sparql
from secure_kg.queries.normal import text

pytest.importorskip("rdflib")


@pytest.mark.parametrize(
    ("sparql", "own"),
    [
        ('SELECT ?x WHERE { ?x <treats> ?d . ?d <with> "BRCA1" }', '?x : treats(?x, ?d) & with(?d, "BRCA1")'),
        ("PREFIX k: <http://k/> SELECT DISTINCT $x { $x k:r k:a }", '?x : "http://k/r"(?x, "http://k/a")'),
        ("SELECT * { ?x <r> <a> ; <s> <b>, <c> }", "?x : r(?x, a) & s(?x, b) & s(?x, c)"),
        (
            "SELECT ?x { { ?x <r> <a> } UNION { ?x <s> <b> } UNION { ?x <t> <c> } }",
            "?x : r(?x, a) | s(?x, b) | t(?x, c)",
        ),
        ("SELECT ?x { { ?x <r> ?y } UNION { ?x <s> ?y } ?y <t> <a> }", "?x : (r(?x, ?y) | s(?x, ?y)) & t(?y, a)"),
        (
            "SELECT ?x { ?x <r> <a> FILTER NOT EXISTS { ?x <s> ?y . ?y <t> <b> } }",
            "?x : r(?x, a) & !(s(?x, ?y) & t(?y, b))",
        ),
        ("SELECT ?x { ?x <r> <a> FILTER(!EXISTS { ?x <s> <b> }) }", "?x : r(?x, a) & !s(?x, b)"),
        ("SELECT ?x { ?x <r> <a> FILTER EXISTS { ?x <s> <b> } }", "?x : r(?x, a) & s(?x, b)"),
        ("SELECT ?x { ?x <r> <a> MINUS { ?x <s> <b> } }", "?x : r(?x, a) & !s(?x, b)"),
        ("SELECT ?x { ?x <r> ?y FILTER(?y = <a> || <b> = ?y) }", "?x : r(?x, ?y) & (?y = a | ?y = b)"),
        ("SELECT ?x { ?x <r> <a> FILTER(?x != <b> && ?x != <c>) }", "?x : r(?x, a) & !?x = b & !?x = c"),
        ("SELECT ?x { ?x <r> ?y VALUES ?y { <a> <b> } }", "?x : r(?x, ?y) & (?y = a | ?y = b)"),
        ("SELECT ?x { ?x <r> ?y } VALUES ?y { <a> }", "?x : r(?x, ?y) & ?y = a"),
        ("SELECT ?x { ?x ^<r> <a> }", "?x : r(a, ?x)"),
        ("SELECT ?x { ?x <r>/^<s>/<t> <a> }", "?x : r(?x, ?y) & s(?z, ?y) & t(?z, a)"),
        ("SELECT ?x { ?x <r>|(<s>/<t>) <a> }", "?x : r(?x, a) | s(?x, ?y) & t(?y, a)"),
        ("SELECT ?x { ?x <r> [ <s> <a> ] }", "?x : r(?x, ?y) & s(?y, a)"),
        ("SELECT ?x { ?x <r> _:y . _:y <s> 'a b' }", '?x : r(?x, ?y) & s(?y, "a b")'),
    ],
)
def test_what_is_understood(sparql: str, own: str) -> None:
    assert text(read_sparql(sparql)) == text(read_question(own))


def test_a_refusal_names_all_that_the_document_says_is_understood() -> None:
    text = (Path(__file__).parents[4] / "docs/queries.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"Understood are (.*?)\. An IRI", " ".join(text.split()))
    assert said.replace("`", "") == UNDERSTOOD
    with pytest.raises(LanguageError, match=re.escape(UNDERSTOOD)):
        read_sparql("SELECT ?x { ?x <r> <a> } LIMIT 3")


@pytest.mark.parametrize(
    ("sparql", "where", "why"),
    [
        ("SELECT ?x {\n ?x <r> }", "2, column 2", "not a SPARQL query from here on"),
        ("nonsense", "1, column 1", "not a SPARQL query"),
        ("", "1, column 1", "not a SPARQL query"),
        ("SELECT ?x { ?x k:r <a> }", "1, column 1", "is every prefix declared"),
        ("ASK { ?x <r> <a> }", "1, column 1", "not a SELECT"),
        ("CONSTRUCT { ?x <r> <a> } WHERE { ?x <r> <a> }", "1, column 1", "not a SELECT"),
        ("SELECT ?x ?y { ?x <r> ?y . ?y <s> <a> }", "1, column 1", "one variable, not 2"),
        ("SELECT ?x FROM <http://g> { ?x <r> <a> }", "1, column 11", "FROM is not"),
        ("SELECT ?x { ?x <r> <a> OPTIONAL { ?x <s> ?y } }", "1, column 24", "OPTIONAL is not"),
        ("SELECT ?x { GRAPH <g> { ?x <r> <a> } }", "1, column 13", "GRAPH is not"),
        ("SELECT ?x { SERVICE <http://s> { ?x <r> <a> } }", "1, column 13", "SERVICE is not"),
        ("SELECT ?x { { SELECT ?x { ?x <r> <a> } } }", "1, column 1", "a subquery is not"),
        ("SELECT ?x { BIND(<a> AS ?x) }", "1, column 13", "BIND or an expression in SELECT is not"),
        ("SELECT (COUNT(?y) AS ?x) { ?y <r> <a> }", "1, column 19", "an expression in SELECT is not"),
        ("\n SELECT ?x { ?x <r> <a> } ORDER BY ?x", "2, column 27", "ORDER BY is not"),
        ("SELECT ?x { ?x <r> <a> } LIMIT 3", "1, column 26", "LIMIT or OFFSET is not"),
        ("SELECT ?x # LIMIT\n{ ?x <limit> 'LIMIT' }\n OFFSET 1 LIMIT 3", "3, column 2", "LIMIT or OFFSET is not"),
        ("SELECT ?x { ?x <r> <a> FILTER(?x > 3) }", "1, column 1", "a part is not understood"),
        ('SELECT ?x { ?x <r> <a> FILTER(REGEX(?x, "a")) }', "1, column 1", "a part is not understood"),
        ("SELECT ?x { ?x <r> <a> FILTER(?x = ?y) }", "1, column 1", "one variable and one entity"),
        ("SELECT ?x { ?x <r> ?y VALUES (?x ?y) { (<a> <b>) } }", "1, column 1", "for one variable"),
        ("SELECT ?x { ?x <r> ?y VALUES ?y { UNDEF } }", "1, column 1", "an IRI or a plain string"),
        ("SELECT ?x { ?x <r> 5 }", "1, column 1", "an IRI or a plain string"),
        ('SELECT ?x { ?x <r> "a"@en }', "1, column 1", "an IRI or a plain string"),
        ("SELECT ?x { ?x <r>* <a> }", "1, column 13", "a relation must be an IRI"),
        ("SELECT ?x { ?x ?p <a> }", "1, column 13", "a relation must be an IRI"),
        ("SELECT ?x { }", "1, column 1", "does not occur"),
        ("SELECT ?x {\n ?x <r> ?y }", "2, column 9", "leads to no named entity"),
        ("SELECT ?x {\n ?x <r> ?y .\n ?y <s> ?x ; <t> <a> }", "2, column 9", "closes a circle"),
        ("SELECT ?x { ?x <r> <a> .\n ?z <s> <b> }", "2, column 2", "not connected"),
        ("SELECT ?x { ?x <r> \0 }", "1, column 20", "a control character"),
    ],
)
def test_what_is_refused_and_where(sparql: str, where: str, why: str) -> None:
    with pytest.raises(LanguageError, match=f"^line {where}: .*{why}"):
        read_sparql(sparql)


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        ("SELECT ?x { ?x <r> <a> }" + " " * 20_000, "more than 16,384 characters"),
        ("SELECT ?x " + "{" * 5000 + "?x <r> <a>" + "}" * 5000, "16 brackets inside each other"),
        ("SELECT ?x { ?x <r> <a> FILTER(" + "!(" * 1000 + "?x = <a>" + ")" * 1000 + ") }", "16 brackets"),
        ("SELECT ?x { " + "?x <r> <a> . " * 1000 + "}", "too many triples"),
        ("SELECT ?x { " + "{ ?x <r> <a> } " * 300 + "}", "too many triples|more than 200 groups"),
        ("SELECT ?x { ?x " + "/".join(["<r>"] * 501) + " <a> }", "more than 500 atoms"),
    ],
    ids=["long", "braces", "negations", "triples", "groups", "path"],
)
def test_hostile_texts_are_refused_soon(hostile: str, why: str) -> None:
    started = time.process_time()
    with pytest.raises(LanguageError, match=why):
        read_sparql(hostile)
    assert time.process_time() - started < 10


def test_the_example_of_the_document_is_understood() -> None:
    document = (Path(__file__).parents[4] / "docs" / "queries.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```\n(SELECT.*?)^```$", document, re.DOTALL | re.MULTILINE)
    own = '?x : treats(?x, ?d) & associated(?d, "BRCA1") & !interacts(?x, "warfarin")'
    assert text(read_sparql(example)) == text(read_question(own))


def test_a_file_is_known_by_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "question.rq"
    path.write_text("SELECT ?x { ?x <r> <a> }")
    (found,) = read_question_file(path)
    assert text(found.query) == text(read_question("?x : r(?x, a)"))
    path.write_text("SELECT ?x {\n ?x <r> ?y }")
    with pytest.raises(UserError, match=r"question\.rq, line 2, column 9: a variable"):
        read_question_file(path)


def test_without_rdflib_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdflib.plugins.sparql.parser", None)
    with pytest.raises(UserError, match="need rdflib"):
        read_sparql("SELECT ?x { ?x <r> <a> }")
