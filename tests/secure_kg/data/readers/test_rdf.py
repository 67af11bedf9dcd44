"""RDF files: every format gives the same triples, and every stated rule holds."""

import gzip
import tracemalloc
from pathlib import Path

import pyarrow
import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.readers.encoding import encode_files
from secure_kg.data.readers.interface import FileRules, LeftOut, Reading
from secure_kg.data.readers.registry import reader_of
from secure_kg.data.triples import read_triples
from secure_kg.foundation.errors import DataError

E = "http://example.org/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TURTLE = "@prefix e: <http://example.org/> .\ne:a e:r e:b, e:c ; e:s e:a .\n"
SAME = {
    "g.nt": "".join(f"<{E}a> <{E}{r}> <{E}{t}> .\n" for r, t in (("r", "b"), ("r", "c"), ("s", "a"))),
    "g.ttl": TURTLE,
    "g.nq": f"<{E}a> <{E}r> <{E}b> .\n<{E}a> <{E}r> <{E}c> <{E}g> .\n<{E}a> <{E}s> <{E}a> .\n",
    "g.trig": "@prefix e: <http://example.org/> .\ne:a e:r e:b . e:g { e:a e:r e:c ; e:s e:a }\n",
    "g.rdf": f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{E}"><rdf:Description rdf:about="{E}a"><e:r rdf:resource="{E}b"/>'
    f'<e:r rdf:resource="{E}c"/><e:s rdf:resource="{E}a"/></rdf:Description></rdf:RDF>',
    "g.jsonld": '{"@context":{"e":"http://example.org/"},"@id":"e:a","e:r":[{"@id":"e:b"},{"@id":"e:c"}],'
    '"e:s":{"@id":"e:a"}}',
}
TRIPLES = {(f"{E}a", f"{E}r", f"{E}b"), (f"{E}a", f"{E}r", f"{E}c"), (f"{E}a", f"{E}s", f"{E}a")}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def triples(path: Path, **rules) -> list[tuple[str, str, str]]:
    named = read_triples(path, FileRules(**rules))
    return list(zip(named.heads, named.relations, named.tails, strict=True))


def left_out(path: Path, reading: Reading = Reading()) -> LeftOut:  # noqa: B008
    return sum((chunk.left_out for chunk in reader_of(path)(path, FileRules(reading))), start=LeftOut())


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_every_format_gives_the_same_triples(tmp_path: Path, name: str, packed: str) -> None:
    data = b"\xef\xbb\xbf" + SAME[name].replace("\n", "\r\n").encode()  # a byte-order mark and Windows line ends
    pack = {"": bytes, ".gz": gzip.compress, ".zst": lambda raw: pyarrow.compress(raw, "zstd", asbytes=True)}
    assert set(triples(write(tmp_path / (name + packed), pack[packed](data)))) == TRIPLES


LITERALS = (
    '@prefix e: <http://example.org/> .\ne:a e:r "x\\ty\\n\\"\\u0007" ; e:r "1"^^e:t ; e:r "x"@en ; e:r 1 ; e:r e:b .\n'
)


def test_literals_are_dropped_and_counted_or_kept_with_their_type(tmp_path: Path) -> None:
    path = write(tmp_path / "g.ttl", LITERALS)
    assert (triples(path), left_out(path)) == ([(f"{E}a", f"{E}r", f"{E}b")], LeftOut(literals=4))
    keep = Reading("keep")
    kept = [tail for _, _, tail in triples(path, reading=keep)]
    integer = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert kept == ['"x\\ty\\n\\"\\u0007"', f'"1"^^<{E}t>', '"x"@en', integer, f"{E}b"]
    assert left_out(path, keep) == LeftOut()
    assert all(name.isprintable() for name in kept)


def test_blank_nodes_have_numbers_of_their_own_file_and_client(tmp_path: Path) -> None:
    one = write(tmp_path / "one.nt", f"_:secret <{E}r> _:b .\n_:b <{E}r> _:secret .\n")
    two = write(tmp_path / "two.ttl", f"_:b <{E}r> [ <{E}r> _:b ] .\n")
    assert triples(one) == [("_:1.1", f"{E}r", "_:1.2"), ("_:1.2", f"{E}r", "_:1.1")]
    assert triples(two) == triples(two)  # the parser's own labels are drawn anew each time
    together = encode_files([("1", one), ("2", two)], Reading())
    assert set(together.entities) == {"_:1.1", "_:1.2", "_:2.1", "_:2.2"}
    clients = [set(encode_files([("train", one)], Reading(), owner=owner).entities) for owner in ("1", "2")]
    assert clients[0] == {"_:1.train.1", "_:1.train.2"}
    assert not clients[0] & clients[1]
    assert not any("secret" in name for name in together.entities)


def test_names_of_tables_that_look_like_blank_nodes_stay_with_their_client(tmp_path: Path) -> None:
    """A partition of an RDF file writes them."""
    path = write(tmp_path / "g.tsv", "_:1.1\tr\tb\n")
    assert triples(path) == [("_:1.1", "r", "b")]
    assert triples(path, owner="2") == [("_:2:1.1", "r", "b")]


def test_triples_about_triples_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "g.nt", f"<{E}a> <{E}r> <<( <{E}a> <{E}r> <{E}b> )>> .\n<{E}a> <{E}r> <{E}c> .\n")
    assert (len(triples(path)), left_out(path)) == (1, LeftOut(triple_terms=1))
    annotated = write(tmp_path / "g.ttl", "@prefix e: <http://example.org/> .\ne:a e:r e:b {| e:s e:c |} .\n")
    assert left_out(annotated) == LeftOut(triple_terms=1)
    assert (f"{E}a", f"{E}r", f"{E}b") in triples(annotated)


def test_many_triple_terms_beside_each_other_are_no_attack(tmp_path: Path) -> None:
    line = f"<{E}a> <{E}r> <<( <{E}a> <{E}r> <<( <{E}a> <{E}r> <{E}b> )>> )>> .\n"
    path = write(tmp_path / "g.nt", line * 6000)
    assert left_out(path) == LeftOut(triple_terms=6000)


def test_graphs_are_told_apart_where_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "g.trig", SAME["g.trig"])
    found = encode_files([("1", path)], Reading(), graphs=True)
    assert found.graphs == ("", f"{E}g")
    assert sorted(found.graph_ids[0].tolist()) == [0, 1, 1]


def test_names_are_exact(tmp_path: Path) -> None:
    """Composed and decomposed letters, upper case and percent signs: nothing is normalised."""
    names = [f"{E}\u00e9", f"{E}e\u0301", f"{E}%C3%A9", f"{E}%c3%a9", "HTTP://example.org/x", "http://example.org:80/x"]
    path = write(tmp_path / "g.nt", "".join(f"<{E}a> <{E}r> <{name}> .\n" for name in names))
    assert [tail for _, _, tail in triples(path)] == names
    escaped = write(tmp_path / "h.nt", f"<{E}a> <{E}r> <{E}\\u00e9> .\n")
    assert triples(escaped)[0][2] == names[0]


@pytest.mark.parametrize("iri", ["x", "../x", "/x", "//evil.org/x", "?x", "#x", ""])
def test_relative_iris_of_json_are_refused(tmp_path: Path, iri: str) -> None:
    path = write(tmp_path / "g.jsonld", f'{{"@id":"{iri}","{E}r":{{"@id":"{E}b"}}}}')
    with pytest.raises(DataError, match="a relative IRI, and no base is declared"):
        triples(path)
    path = write(tmp_path / "h.jsonld", f'{{"@context":{{"@base":"{E}"}},"@id":"{iri}","{E}r":{{"@id":"{E}b"}}}}')
    assert triples(path)[0][0].startswith("http://")


def test_relative_types_of_kept_literals_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "g.jsonld", f'{{"@id":"{E}a","{E}r":{{"@value":"1","@type":"dt"}}}}')
    with pytest.raises(DataError, match="a relative IRI, and no base is declared"):
        triples(path, reading=Reading("keep"))
    text = '\\"^^<secure-kg-no-base:x>'
    path = write(tmp_path / "h.jsonld", f'{{"@id":"{E}a","{E}r":"{text}"}}')
    assert triples(path, reading=Reading("keep"))[0][2] == f'"{text}"'


def test_prefixes_are_kept_for_tables_only(tmp_path: Path) -> None:
    found = encode_files([("1", write(tmp_path / "g.ttl", TURTLE))], Reading())
    assert found.prefixes == {"e": E}
    assert found.entities == (f"{E}a", f"{E}b", f"{E}c")


letters = st.characters(
    min_codepoint=0x21, max_codepoint=0x2FF, exclude_categories=["Cc"], exclude_characters='<>"{}|^`\\#?%[]@:/'
)
parts = st.text(letters, max_size=8)
iris = parts.map(lambda text: pyoxigraph.NamedNode(f"{E}{text}"))
nodes = iris | st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{0,5}", fullmatch=True).map(pyoxigraph.BlankNode)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(pyoxigraph.Literal)


@given(st.lists(st.builds(pyoxigraph.Triple, nodes, iris, nodes | texts), max_size=12))
@settings(max_examples=25, deadline=None)
def test_reads_what_the_library_writes(tmp_path_factory: pytest.TempPathFactory, written) -> None:
    """Whatever names and literals there are, chunks hold the library's triples, with blank nodes renamed alike."""
    folder = tmp_path_factory.mktemp("rdf")
    for suffix, form in ((".nt", pyoxigraph.RdfFormat.N_TRIPLES), (".ttl", pyoxigraph.RdfFormat.TURTLE)):
        path = write(folder / f"g{suffix}", pyoxigraph.serialize(written, format=form) or b"")
        found = triples(path, reading=Reading("keep"))
        expected = list(pyoxigraph.parse(path=str(path)))
        assert len(found) == len(expected)
        names: dict[str, str] = {}
        for row, quad in zip(found, expected, strict=True):
            for name, term in zip(row, (quad.subject, quad.predicate, quad.object), strict=True):
                plain = term.value if isinstance(term, pyoxigraph.NamedNode) else str(term)
                assert names.setdefault(plain, name) == name
                assert name.startswith("_:1.") if isinstance(term, pyoxigraph.BlankNode) else name == plain
        assert len(set(names.values())) == len(names)


def test_an_empty_file_has_no_triples_or_is_none(tmp_path: Path) -> None:
    for name in ("g.nt", "g.ttl", "g.nq", "g.trig"):
        assert triples(write(tmp_path / name, b"")) == []
    for name in ("g.rdf", "g.jsonld"):
        with pytest.raises(DataError):
            triples(write(tmp_path / name, b""))


def test_triples_are_never_all_in_memory_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the triples of the same names take more memory by their ids only."""
    monkeypatch.setattr("secure_kg.data.readers.rdf.CHUNK", 500)
    peaks = []
    for count in (4000, 12000):
        lines = (f"<{E}a{number % 50}> <{E}r{number % 7}> <{E}b{number % 90}> .\n" for number in range(count))
        path = write(tmp_path / f"{count}.nt", "".join(lines))
        tracemalloc.start()
        encode_files([("1", path)], Reading())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 8000 * 60  # by name a triple takes some 300 bytes
