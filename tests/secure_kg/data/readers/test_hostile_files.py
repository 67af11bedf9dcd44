"""Files that somebody has damaged or made to do harm: one line that names a place, in little time and memory."""

import gzip
import http.server
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from secure_kg.data.readers import json_guard, rdf, streams, xml_guard
from secure_kg.data.triples import read_triples
from secure_kg.foundation.errors import DataError

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
GOOD = b"<http://e/a> <http://e/r> <http://e/b> .\n"
TTL = b"@prefix e: <http://e/> .\n"


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_triples(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "SECRET" not in message.removeprefix(str(path))
    assert "\n" not in message
    assert caught.value.__suppress_context__  # a traceback must not quote the file either
    return message.removeprefix(str(path))


def xml(body: str, doctype: str = "") -> bytes:
    return f'{doctype}<rdf:RDF {RDF}>\n<rdf:Description rdf:about="http://e/a">\n{body}</rdf:Description></rdf:RDF>'.encode()


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("g.nt", GOOD + b"<http://e/a> <http://e/r> SECRET .\n", ", line 2, column 27: not valid N-Triples"),
        ("g.nt", GOOD + b"<http://e/SECRET> <http://e/r>\n<http://e/b> .\n", ", line 3, column 1: not valid"),
        ("g.nt", GOOD + b"<http://e/a> <http://e/r> <SECRET> .\n", ", line 2, column 27: a relative IRI"),
        ("g.nt", GOOD + b"<http://e/a> <http://e/r> <http://e/SECRET\xff> .", ", line 2, column 42: not valid UTF-8"),
        ("g.ttl", TTL + b"e:a e:r SECRET .\n", ", line 2, column 9: not valid Turtle"),
        ("g.ttl", TTL + b"e:a e:r SECRET:b .\n", ", line 2, column 9: a prefix that is not declared"),
        ("g.ttl", TTL + b"e:a e:r <SECRET> .\n", ", line 2, column 9: a relative IRI, and no base is declared"),
        ("g.ttl", TTL + b'e:a e:r "SECRET', ", line 2"),
        ("g.nq", GOOD + b"<http://e/a> <http://e/r> <http://e/b> SECRET .\n", ", line 2, column 40: not valid N-Quads"),
        ("g.trig", b"<http://e/g> { SECRET", ", line 1, column 16: not valid TriG"),
        ("g.jsonld", b'{"@id": "http://e/a",\n "SECRET"', ", line 2, column 10: not valid JSON-LD"),
        ("g.jsonld", b'{"@id":"SECRET","http://e/r":{"@id":"http://e/b"}}', ": a relative IRI, and no base"),
        ("g.rdf", xml('<e:r rdf:resource="http://e/b"/>\n<e:r rdf:resource="SECRET"/>\n'), ", line 4: a relative IRI"),
        ("g.rdf", xml("<e:r>\n")[:-20], ", line 4, column 1: not well-formed XML"),
        ("g.rdf", b"\xff\xfe<\0", ", line 1"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_fault_is_named_by_its_place(tmp_path: Path, name: str, content: bytes, place: str, packed: bool) -> None:
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    assert refused(path).startswith(place)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_truncated_and_damaged_archives(tmp_path: Path, suffix: str) -> None:
    data = b"".join(b"<http://e/%d> <http://e/r> <http://e/b> .\n" % (number * 7919) for number in range(4000))
    whole = gzip.compress(data) if suffix == ".gz" else pyarrow.compress(data, "zstd", asbytes=True)
    path = tmp_path / f"g.nt{suffix}"
    for length in (0, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "ends here, too early" in refused(path)
    path.write_bytes(b"SECRET" * 100)
    assert "damaged" in refused(path)
    path.write_bytes(whole)
    assert len(read_triples(path)) == 4000


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("name", ["g.nt", "g.csv", "g.tsv"])
def test_archives_may_not_unpack_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, name: str
) -> None:
    monkeypatch.setattr(streams, "FREE", 1 << 18)
    bomb = b"\n" * (1 << 22)
    path = tmp_path / (name + suffix)
    path.write_bytes(gzip.compress(bomb) if suffix == ".gz" else pyarrow.compress(bomb, "zstd", asbytes=True))
    assert "unpacks to more than 250 times its size" in refused(path)


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nt")
    (tmp_path / "folder.ttl").mkdir()
    for name, said in (("pipe.nt", "no regular file"), ("folder.ttl", "is a folder"), ("none.nt", "No such file")):
        assert said in refused(tmp_path / name)


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("doctype", "said"),
    [
        (f'<!DOCTYPE r [<!ENTITY a0 "ha">{LAUGHS}]>', "an entity that names others"),
        (f'<!DOCTYPE r [<!ENTITY a11 "{"x" * 2000}">]>', "longer than 1000"),
        ('<!DOCTYPE r [<!ENTITY a11 SYSTEM "file:///etc/hostname">]>', "an entity that lies elsewhere"),
        ('<!DOCTYPE r [<!ENTITY % a11 "x">]>', "an entity that lies elsewhere"),
        ('<!DOCTYPE r SYSTEM "d" [%x;<!ENTITY a11 "x">]>', "an entity that lies elsewhere"),
        ('<!DOCTYPE r [<!ENTITY a11 "x"><!ENTITY a11 "y">]>', "an entity that is declared twice"),
        ('<!DOCTYPE r [<!ENTITY a11 "x"><!-- <!ENTITY a11 "y"> -->]>', "declared inside of something else"),
        ('<!DOCTYPE r [<!ENTITY a11 "x"><?p <!ENTITY a11 "y"> ?>]>', "declared inside of something else"),
        ("<!DOCTYPE r [<!ENTITY a11 '<!ENTITY b \"y\">'>]>", "declared inside of something else"),
        ("<!DOCTYPE r SYSTEM '<!ENTITY a11 \"y\">' [<!ENTITY a11 'x'>]>", "declared inside of something else"),
        ('<!DOCTYPE r [<!ENTITY a11 "x"><!ENTITY lt "y">]>', "a name of XML's own"),
    ],
)
def test_entities_of_xml(tmp_path: Path, doctype: str, said: str) -> None:
    path = tmp_path / "g.rdf"
    path.write_bytes(xml("<e:r>&a11;</e:r>", doctype))
    assert said in refused(path)


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16", "utf-16-le"])
def test_other_encodings_of_xml(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "g.rdf"
    for declared in (f'<?xml version="1.0" encoding="{encoding}"?>', *[""] * encoding.startswith("utf-16")):
        path.write_bytes((declared + xml('<e:r rdf:resource="http://e/SECRET"/>').decode()).encode(encoding))
        assert refused(path).startswith(", line 1: RDF/XML is read in UTF-8 only; convert the file")


def test_plain_entities_of_ontologies_are_read(tmp_path: Path) -> None:
    path = tmp_path / "g.owl"
    other = '<!-- "x" --> <!ELEMENT r ANY>\n<!ATTLIST r x CDATA "y"> <?p x?> <!NOTATION n SYSTEM "n">'
    begin = f'<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE r [{other}\n<!ENTITY x "http://e/">]>'
    path.write_bytes(xml('<e:r rdf:resource="&x;b"/>', begin))
    assert read_triples(path).tails == ("http://e/b",)


def test_deep_xml(tmp_path: Path) -> None:
    depth = xml_guard.DEEPEST
    (tmp_path / "g.rdf").write_bytes(xml("<e:r><rdf:Description>" * depth + "</rdf:Description></e:r>" * depth))
    assert "nested deeper" in refused(tmp_path / "g.rdf")


def in_little_memory(path: Path, limit: int = 2 << 30) -> str:
    """Read in a process of its own: a parser that runs out of stack or memory must not take the tests along."""
    code = """
import pathlib, sys
from secure_kg.data.readers.encoding import encode_files
from secure_kg.data.readers.interface import Reading
encode_files([("train", pathlib.Path(sys.argv[1]))], Reading(), owner="1")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 1, done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_triple_terms_inside_each_other(tmp_path: Path) -> None:
    """Deep ones end the parser's process, also if comments pretend that they are closed."""
    depth = 4 * rdf._MOST_OPEN
    path = tmp_path / "g.ttl"
    path.write_bytes(b"<a:b> <a:c> " + b"<<( <a:b> <a:c> # )>>\n" * depth + b"<a:d>" + b" )>>" * depth + b" .")
    assert "triple terms inside each other" in in_little_memory(path)


def nested(depth: int, between: str = "") -> bytes:
    return (f'{{"@id":"http://e/a",{between}"http://e/r":' * depth + '{"@id":"http://e/b"}' + "}" * depth).encode()


def test_json_inside_itself(tmp_path: Path) -> None:
    """Deep values end the parser's process, also if strings pretend that they are closed."""
    path = tmp_path / "g.jsonld"
    path.write_bytes(b"\n" + nested(4000))
    assert "line 2: values nested deeper than 200" in in_little_memory(path)
    path.write_bytes(nested(4000, between=r""""http://e/\\":"\"}}}]]]\\",""" + "\n"))
    assert refused(path) == ", line 201: values nested deeper than 200"
    path.write_bytes(nested(json_guard.DEEPEST - 1))
    assert len(read_triples(path)) == json_guard.DEEPEST - 1


def test_brackets_in_strings_are_no_nesting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the file falls into pieces."""
    value = r'''"[[[\"{{{\\\"[[<<(\\\\"'''
    entries = ",".join(
        f'{{"@id":"http://e/{n}","http://e/s":{value},"http://e/r":{{"@id":"http://e/b"}}}}' for n in range(300)
    )
    (tmp_path / "g.jsonld").write_text(f"[{entries}]")
    for size in (1, 7, 1 << 15):
        monkeypatch.setattr(json_guard, "_PIECE", size)
        assert len(read_triples(tmp_path / "g.jsonld")) == 300


@pytest.mark.parametrize("text", ["x", "_:x"])
def test_a_small_parquet_file_stays_small(tmp_path: Path, text: str) -> None:
    """One long text in a dictionary for all rows, or each row as the one before: 2 GB if it were spread out."""
    rows, path = 20_000, tmp_path / "g.parquet"
    long = pyarrow.array([text.ljust(100_000, "x")])
    heads = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), long)
    others = {"relation": ["r"] * rows, "tail": ["t"] * rows}
    parquet.write_table(pyarrow.table({"head": heads, **others}), path, compression="zstd")
    assert path.stat().st_size < 4000
    assert "unpacks to more than 250 times its size" in in_little_memory(path, 1 << 30)


@pytest.mark.parametrize("account", [True, False])
def test_texts_by_differences_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: bool) -> None:
    """Also if the file's account of its encodings is silent about them."""
    path = tmp_path / "g.parquet"
    table = pyarrow.table({"head": ["x" * 1000] * 100, "relation": ["r"] * 100, "tail": ["t"] * 100})
    encodings = {"head": "DELTA_BYTE_ARRAY", "relation": "PLAIN", "tail": "PLAIN"}
    parquet.write_table(table, path, compression="zstd", use_dictionary=False, column_encoding=encodings)
    if not account:
        monkeypatch.setattr("secure_kg.data.readers.parquet._ENCODINGS", {"RLE", "PLAIN", "DELTA_BYTE_ARRAY"})
    assert ("texts in an encoding that is not read" if account else "not a Parquet file, or a damaged") in refused(path)


def test_names_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.nt"
    path.write_bytes(b'<a:b> <a:c> "' + b"x" * (20 << 20) + b'" .')
    assert "more than 16 MiB" in refused(path)
    path = tmp_path / "g.tsv"
    monkeypatch.setattr(streams, "LONGEST_LINE", 1 << 21)
    path.write_bytes(b"a\tr\tb\n" + b"x" * (4 << 20))
    assert "line 2: a line of more than 2 MiB" in refused(path)


def test_nothing_is_fetched(tmp_path: Path) -> None:
    """A server waits for contexts, entities, stylesheets and imports. Nobody asks it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *words: object) -> None:
            """Nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        hostile = {
            "a.jsonld": f'{{"@context":"{url}c","@id":"http://e/a","http://e/r":{{"@id":"http://e/b"}}}}',
            "b.jsonld": f'{{"@context":[{{"@import":"{url}i"}}],"@id":"http://e/a"}}',
            "c.rdf": xml("<e:r>&x;</e:r>", f'<!DOCTYPE r SYSTEM "{url}d" [<!ENTITY x SYSTEM "{url}x">]>').decode(),
        }
        for name, text in hostile.items():
            (tmp_path / name).write_text(text)
            refused(tmp_path / name)
        owl = "http://www.w3.org/2002/07/owl#imports"
        harmless = {
            "d.ttl": f"@base <{url}> .\n<a> <{owl}> <{url}o> .\n",
            "e.rdf": xml('<e:r rdf:resource="http://e/b"/>', f'<!DOCTYPE r SYSTEM "{url}d">').decode(),
        }
        for name, text in harmless.items():
            (tmp_path / name).write_text(text)
            assert len(read_triples(tmp_path / name)) == 1
        server.shutdown()
    assert asked == []
    with pytest.raises(DataError, match="a context that lies elsewhere; nothing is fetched"):
        read_triples(tmp_path / "a.jsonld")
