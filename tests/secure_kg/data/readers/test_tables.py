"""Tables: columns by header or by choice, quoting, Parquet, and the exports of Neo4j."""

import builtins
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from secure_kg.data.readers import streams
from secure_kg.data.readers.interface import FileRules, LeftOut, Reading
from secure_kg.data.readers.registry import reader_of
from secure_kg.data.triples import NamedTriples, part_suffix, read_triples, write_triples
from secure_kg.foundation.errors import DataError

ROWS = [("a", "r", "b"), ("a", "s", "c, d")]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def triples(path: Path, columns: str = "", owner: str = "") -> list[tuple[str, str, str]]:
    named = read_triples(path, FileRules(Reading(columns=columns), owner))
    return list(zip(named.heads, named.relations, named.tails, strict=True))


def refused(path: Path, columns: str = "") -> str:
    with pytest.raises(DataError) as caught:
        triples(path, columns)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "SECRET" not in message.removeprefix(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('head,relation,tail\na,r,b\n\na,s,"c, d"\n', ""),
        ('\ufeffTail,Weight,HEAD,Relation\r\nb,1,a,r\r\n"c, d",2,a,s\r\n', ""),
        ('subject,predicate,object\n"a",r,b\na,s,"c, d"', ""),
        ('source,type,target\na,r,b\na,s,"c, d"\n', ""),
        ('from,kind,to\na,r,b\na,s,"c, d"\n', "from,Kind,to"),
        ('x,b,a,r\nx,"c, d",a,s\n', "3,4,2"),
    ],
)
def test_columns_of_csv(tmp_path: Path, text: str, columns: str) -> None:
    assert triples(write(tmp_path / "g.csv", text), columns) == ROWS


def test_columns_of_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", "\nSource\tx\tTARGET\tType\na\t1\tb\tr\na\t2\tc, d\ts\n")
    assert triples(path) == ROWS
    bare = write(tmp_path / "h.tsv", 'r\t"a"\tb\n')
    assert triples(bare, "2,1,3") == [('"a"', "r", "b")]  # no quoting
    assert triples(bare) == [("r", '"a"', "b")]


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("SECRET,r,b\n", "", ", line 1: no known header"),
        ("from,kind,to\nSECRET,r,b\n", "from,SECRET,to", ", line 1: column 2 of those that were chosen is not in"),
        ("head,relation,tail,head\nSECRET,r,b,c\n", "", ", line 1: column head is there more than once"),
        ("head,relation,tail,source,type,target\n", "", ", line 1: a header that names head, relation and tail twice"),
        ("head,relation,tail\na,r,b\nSECRET,r\n", "", ", line 3: 2 field(s); expected 3"),
        ('head,relation,tail\n"a\nb",r,b\nSECRET,r, \n', "", ", line 4: an empty field"),
        ('head,relation,tail\na,r,b\nSECRET,r,"b\n', "", ", line 3: not valid CSV"),
        ('head,relation,tail\nSECRET,r,"b"c\n', "", ", line 2: not valid CSV"),
        ("SECRET,r,b\n", "1,2,4", ", line 1: --columns: this row has columns 1 to 3"),
        ("SECRET,r,b\n", "0,2,3", ", line 1: --columns: this row has columns 1 to 3"),
        ("_id,_labels,_start,_type\nx,y,z,w\n", "", ", line 1: no known header"),
        ("_id,_start,_type,_end\n,1,SECRET,\n", "", ", line 2: a relationship without"),
        ("_id,_start,_type,_end\n,1,r,2\n", "SECRET,_type,name", ", line 1: --columns of this export"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, columns: str, said: str) -> None:
    assert refused(write(tmp_path / "g.csv", text), columns).startswith(said)


@pytest.mark.parametrize("columns", ["a,b", "a,b,c,d", "a,,c"])
def test_three_columns_are_chosen(columns: str) -> None:
    with pytest.raises(DataError, match="--columns needs three"):
        Reading(columns=columns)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)


@given(st.lists(st.tuples(names, names, names), max_size=6))
@settings(max_examples=60, deadline=None)
def test_any_name_is_written_and_read_back(tmp_path_factory: pytest.TempPathFactory, rows) -> None:
    """Tabs, line ends, quotes, byte-order marks and headers included."""
    columns = NamedTriples(*(tuple(row[place] for row in rows) for place in range(3)))
    path = tmp_path_factory.mktemp("part") / f"train{part_suffix(columns)}"
    write_triples(path, columns)
    assert read_triples(path) == columns


@pytest.mark.parametrize(
    ("row", "suffix"),
    [
        (("a", "r", "b"), ".tsv"),
        (("a\tb", "r", "c"), ".csv"),
        (("a", "r", "b\r\nc"), ".csv"),
        (("\ufeffa", "r", "b"), ".csv"),
        (("Head", "relation", "tail"), ".csv"),
        (("'\"", "r", "\x1b[2J"), ".tsv"),
    ],
)
def test_names_that_need_quotes(tmp_path: Path, row: tuple[str, str, str], suffix: str) -> None:
    one = NamedTriples((row[0],), (row[1],), (row[2],))
    assert part_suffix(one) == suffix
    write_triples(tmp_path / f"train{suffix}", one)
    assert read_triples(tmp_path / f"train{suffix}") == one


# --- Parquet --------------------------------------------------------------------------------------------------------


def table(path: Path, **columns: object) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet(tmp_path: Path) -> None:
    heads, relations, tails = (list(column) for column in zip(*ROWS, strict=True))
    packed = pyarrow.array(relations).dictionary_encode()
    path = table(tmp_path / "g.parquet", object=tails, weight=[0.5, 1.5], subject=heads, predicate=packed)
    assert triples(path) == ROWS
    numbers = table(tmp_path / "n.parquet", x=[1, 2], kind=relations, y=[3, 4])
    assert triples(numbers, "x,kind,y") == [("1", "r", "3"), ("2", "s", "4")]
    many = [f"n{number % 12_000}" for number in range(40_000)]  # more than are read at a time
    large = table(
        tmp_path / "l.parquet", head=many, relation=many[::-1], tail=pyarrow.array(many, pyarrow.large_string())
    )
    assert triples(large) == list(zip(many, many[::-1], many, strict=True))


def test_wrong_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = table(tmp_path / "m.parquet", head=["a", None], relation=["r", "r"], tail=["b", "SECRET"])
    assert "row 2 has no head" in refused(missing)
    late = table(tmp_path / "l.parquet", head=["a"] * 40_000 + [" "], relation=["r"] * 40_001, tail=["SECRET"] * 40_001)
    assert "row 40001 has no head" in refused(late)
    halved = pyarrow.array([b"SECRET\xff"]).view(pyarrow.string())
    assert "not valid UTF-8" in refused(table(tmp_path / "u.parquet", head=halved, relation=["r"], tail=["b"]))
    wrong = table(tmp_path / "w.parquet", head=[0.5], relation=["r"], tail=["b"])
    assert "neither text nor whole numbers" in refused(wrong)
    assert "columns of a Parquet file have names" in refused(wrong, "1,2,3")
    whole = wrong.read_bytes()
    for number, content in enumerate((b"", b"SECRET" * 9, whole[:-9], whole[: len(whole) // 2])):
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(content)
        assert "not a Parquet file, or a damaged one" in refused(path)
    monkeypatch.setattr("secure_kg.data.readers.parquet.FREE", 1 << 16)
    same = ["x" * 50] * 100_000
    bomb = table(tmp_path / "b.parquet", head=same, relation=same, tail=same)
    assert "unpacks to more than 250 times its size" in refused(bomb)


def test_without_pyarrow_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path / "g.parquet", head=["a"], relation=["r"], tail=["b"])
    (tmp_path / "g.nt.zst").write_bytes(pyarrow.compress(b"", "zstd", asbytes=True))
    original: Callable[..., object] = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in ("g.parquet", "g.nt.zst"):
        assert refused(tmp_path / name) == ": needs the package pyarrow: pip install 'secure-kg[parquet]'"
    assert streams.PACKED == (".gz", ".zst")


# --- Neo4j ----------------------------------------------------------------------------------------------------------


def test_relationships_of_neo4j_admin(tmp_path: Path) -> None:
    plain = write(tmp_path / "g.csv", ":START_ID,since:int,:END_ID,:TYPE\n7,2001,8,KNOWS\n")
    assert triples(plain) == [("7", "KNOWS", "8")]
    spaces = write(tmp_path / "h.csv", ":START_ID(Person),:END_ID(Town){label:Town},:TYPE\n7,7,LIVES_IN\n")
    assert triples(spaces) == [("Person:7", "LIVES_IN", "Town:7")]
    colons = write(tmp_path / "i.csv", ":START_ID(A),:TYPE,:END_ID(A:B)\nB:1,r,1\n")
    assert triples(colons) == [("A:B:1", "r", "A\\:B:1")]
    half = ":START_ID,:TYPE,:END_ID(A)\n"
    assert triples(write(tmp_path / "j.csv", f"{half}1,r,B:1\n")) == [("1", "r", "A:B:1")]
    assert "line 2: an id with a colon" in refused(write(tmp_path / "j.csv", f"{half}A:1,r,1\n"))


APOC = (
    '"_id","_labels","name","_start","_end","_type","since"\n'
    '"7",":P","Ann",,,,\n"8",":P","Bob",,,,\n"9",":P","",,,,\n,,,"7","8","KNOWS","2001"\n,,,"8","9","KNOWS",""\n'
)


def test_export_of_apoc_as_csv(tmp_path: Path) -> None:
    """The database's own ids mean nothing elsewhere: two clients' must not meet."""
    path = write(tmp_path / "g.csv", APOC)
    assert triples(path) == [("_:1.1", "KNOWS", "_:1.2"), ("_:1.2", "KNOWS", "_:1.3")]
    assert triples(path, owner="2")[0] == ("_:2.1.1", "KNOWS", "_:2.1.2")
    assert triples(path, "name,_type,name") == [("Ann", "KNOWS", "Bob"), ("Bob", "KNOWS", "_:1.1")]
    assert sum((chunk.left_out for chunk in reader_of(path)(path, FileRules())), LeftOut()) == LeftOut(node_rows=3)


def test_export_of_apoc_as_json(tmp_path: Path) -> None:
    names_of = {"7": "Ann", "8": 5}
    people = [{"type": "node", "id": number, "properties": {"name": name}} for number, name in names_of.items()]
    link = {"type": "relationship", "id": "0", "label": "KNOWS", "start": {"id": "7"}, "end": {"id": "8"}}
    path = write(tmp_path / "g.json", "\n".join(map(json.dumps, [*people, link])))
    assert triples(path) == [("_:1.1", "KNOWS", "_:1.2")]
    assert triples(path, "name,label,name") == [("Ann", "KNOWS", "5")]
    assert "--columns of this export" in refused(path, "name,label,age")
    for text in ('{"type": "SECRET"}', "SECRET", "[" * 100_000, '{"type":"relationship","label":"SECRET","start":{}}'):
        bad = write(tmp_path / "bad.jsonl", json.dumps(link) + "\n" + text)
        assert refused(bad).startswith(", line 2: not a line of apoc.export.json")


FORGED = "_:2.train.1"
"""The name of client 2's first blank node."""


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("g.tsv", f"{FORGED}\t{FORGED}\t{FORGED}\n", ""),
        ("g.csv", f"head,relation,tail\n{FORGED},{FORGED},{FORGED}\n", ""),
        ("h.csv", f":START_ID(_),:TYPE,:END_ID(_)\n{FORGED[2:]},{FORGED},{FORGED[2:]}\n", ""),
        ("i.csv", f"_id,name,_start,_type,_end\n0,{FORGED},,,\n,,0,{FORGED},0\n", "name,_type,name"),
        (
            "g.json",
            f'{{"type":"node","id":"0","properties":{{"name":"{FORGED}"}}}}\n'
            f'{{"type":"relationship","label":"{FORGED}","start":{{"id":"0"}},"end":{{"id":"0"}}}}\n',
            "name,label,name",
        ),
    ],
)
def test_no_table_forges_the_blank_node_of_another_client(tmp_path: Path, name: str, text: str, columns: str) -> None:
    own = "_:1:2.train.1"
    assert triples(write(tmp_path / name, text), columns, owner="1") == [(own, own, own)]


def test_no_parquet_file_forges_either(tmp_path: Path) -> None:
    path = table(tmp_path / "g.parquet", head=[FORGED], relation=[FORGED], tail=[FORGED])
    assert FORGED not in triples(path, owner="1")[0]


def node(number: str, name: str) -> str:
    return json.dumps({"type": "node", "id": number, "properties": {"name": name}}) + "\n"


def test_a_node_of_apoc_is_one_entity(tmp_path: Path) -> None:
    """A name that comes late, or twice, would make it two; one that never comes is counted."""
    head, used = "_id,name,_start,_type,_end\n", ",,0,r,1\n"
    link = '{"type":"relationship","label":"r","start":{"id":"0"},"end":{"id":"1"}}\n'
    for name, late, twice, columns in (
        ("g.csv", f"{head}{used}0,SECRET,,,\n", f"{head}0,a,,,\n0,SECRET,,,\n", "name,_type,name"),
        ("g.json", f"\n{link}{node('0', 'SECRET')}", f"\n{node('0', 'a')}{node('0', 'SECRET')}", "name,label,name"),
    ):
        said = ", line 3: a node gets its name after a relationship has used it; put nodes first"
        assert refused(write(tmp_path / name, late), columns) == said
        assert refused(write(tmp_path / name, twice), columns) == ", line 3: a node gets a second name"
    path = write(tmp_path / "h.csv", f"{head}0,a,,,\n1,,,,\n{used}{used}")
    for columns, unnamed in (("name,_type,name", 1), ("", 0)):
        (chunk,) = reader_of(path)(path, FileRules(Reading(columns=columns)))
        assert chunk.left_out == LeftOut(node_rows=2, unnamed_nodes=unnamed)
