"""One's own graph in any format: as a data set, in a client's folder, by named graphs; and what a server may open."""

import dataclasses
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from secure_kg.data.client_data import load_graph, load_graphs
from secure_kg.data.folders import client_folder, load_client_folder, write_client_folder
from secure_kg.data.partition import load_client, partition
from secure_kg.data.prefixes import Shortener, read_prefixes, short_names, write_prefixes
from secure_kg.data.readers.interface import LeftOut, Reading
from secure_kg.data.soundness import about_graph, faults
from secure_kg.data.sources import PooledSource, check_source_name, load_source
from secure_kg.data.triples import PARTS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import DataError

E = "http://example.org/"
DRAWN = random.Random(5)
TRIPLES = sorted(
    {(f"{E}e{DRAWN.randrange(12)}", f"{E}r{DRAWN.randrange(3)}", f"{E}e{DRAWN.randrange(12)}") for _ in range(160)}
)
LINES = "".join(f"<{head}> <{relation}> <{tail}> .\n" for head, relation, tail in TRIPLES)
LABEL = f'<{E}e1> <{E}label> "one" .\n'


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def names(graph, part: str) -> set[tuple[str, str, str]]:
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.part(part).tolist()}


def test_a_file_of_any_format_is_a_data_set(tmp_path: Path) -> None:
    tsv = write(tmp_path / "g.tsv", "".join("\t".join(row) + "\n" for row in TRIPLES))
    expected = partition(load_source(str(tsv)), 3, "triples", 7)
    for path in (write(tmp_path / "g.nt", LINES + LABEL), write(tmp_path / "in" / "a.ttl", LABEL + LINES).parent):
        check_source_name(str(path))
        source = load_source(str(path))
        assert isinstance(source, PooledSource)
        assert source.left_out == LeftOut(literals=1)
        for one, other in zip(partition(source, 3, "triples", 7), expected, strict=True):
            assert all(np.array_equal(one.part(part), other.part(part)) for part in PARTS)
            assert one.entities == other.entities
            assert about_graph(one)["left_out"] == {"literals": 1}
    assert "left_out" not in about_graph(expected[0])


def test_a_file_of_literals_alone_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "g.nt", LABEL)
    with pytest.raises(DataError, match=r"no triples \(1 triples with a literal left out\)"):
        load_source(str(path))
    kept = load_source(str(path), Reading("keep"))
    assert isinstance(kept, PooledSource)
    assert kept.entities == ('"one"', f"{E}e1")


def test_settings_say_how_files_are_read(tmp_path: Path) -> None:
    rows = "".join(f"{t},x,{r},{h}\n" for h, r, t in TRIPLES)
    path = write(tmp_path / "g.csv", "to,x,kind,from\n" + rows)
    config = RunConfig(dataset=str(path), columns="from,kind,to")
    assert load_graph(config, 2, 1).relations == (f"{E}r0", f"{E}r1", f"{E}r2")
    kept = RunConfig(dataset=str(write(tmp_path / "g.nt", LINES + LABEL)), literals="keep", by="triples")
    assert any('"one"' in load_graph(kept, 2, client).entities for client in (1, 2))
    assert config.digest() == dataclasses.replace(config, columns="").digest()  # each client's own table has its own
    assert kept.digest() != dataclasses.replace(kept, literals="drop").digest()
    for wrong in ({"columns": "a,b"}, {"literals": "some"}):
        with pytest.raises(DataError):
            RunConfig(**wrong)


# --- folders of clients -----------------------------------------------------------------------------------------------


def test_parts_of_a_folder_in_any_format(tmp_path: Path) -> None:
    train, valid, test = LINES.split("\n", 2)[0], f"<{E}x> <{E}r0> _:b .", f"_:b <{E}r0> <{E}x> ."
    write(tmp_path / "train.nt", f"{train}\n_:b <{E}r0> <{E}x> .\n")
    write(tmp_path / "valid.ttl", valid)
    write(tmp_path / "test.nq", test)
    graph = load_client_folder(tmp_path, 3)
    assert names(graph, "train") >= {("_:3.train.1", f"{E}r0", f"{E}x")}
    assert names(graph, "valid") == {(f"{E}x", f"{E}r0", "_:3.valid.1")}
    assert names(graph, "test") == {("_:3.test.1", f"{E}r0", f"{E}x")}
    assert faults(graph).untrained_entities == 2  # blank nodes of two files never meet


@pytest.mark.parametrize("root", [False, True])
def test_a_folder_with_one_file_is_divided_by_the_seed(tmp_path: Path, root: bool) -> None:
    folder = tmp_path if root else client_folder(tmp_path, 2)
    write(folder / "mine.nt", LINES + LINES[: LINES.index("\n") + 1])
    write(folder / "notes.md", "no graph")
    graphs = {seed: load_client_folder(tmp_path, 2, seed=seed) for seed in (0, 1)}
    again = load_client_folder(tmp_path, 2, seed=0)
    assert all(np.array_equal(graphs[0].part(part), again.part(part)) for part in PARTS)
    assert names(graphs[0], "test") != names(graphs[1], "test")
    sizes = [len(graphs[0].part(part)) for part in PARTS]
    assert sum(sizes) == len(TRIPLES)
    assert sizes[1:] == [(len(TRIPLES) + 5) // 10] * 2
    assert graphs[0].origin.dropped_repeats == 1
    assert set().union(*(names(graphs[0], part) for part in PARTS)) == set(TRIPLES)
    assert faults(graphs[0]).damage() == faults(graphs[0]).blemishes() == []


def test_folders_in_which_it_is_not_clear_what_is_meant(tmp_path: Path) -> None:
    write(tmp_path / "one" / "a.nt", LINES)
    write(tmp_path / "one" / "b.ttl", LINES)
    with pytest.raises(DataError, match=r"both a\.nt and b\.ttl; keep one, or name them train, valid and test"):
        load_client_folder(tmp_path / "one", 1)
    with pytest.raises(DataError, match=r"both a\.nt and b\.ttl"):
        load_source(str(tmp_path / "one"))
    write(tmp_path / "two" / "whole.nt", LINES)
    write(tmp_path / "two" / "client-1" / "mine.nt", LINES)
    assert len(load_client_folder(tmp_path / "two", 1).train)
    with pytest.raises(DataError, match="neither a train file nor a folder client-2"):  # whole.nt is not client 2's
        load_client_folder(tmp_path / "two", 2)
    write(tmp_path / "three" / "test.nt", LINES)
    write(tmp_path / "three" / "mine.nt", LINES)
    with pytest.raises(DataError, match=r"both mine\.nt and test\.nt; keep one"):
        load_client_folder(tmp_path / "three", 1)
    (tmp_path / "three" / "mine.nt").unlink()
    with pytest.raises(DataError, match=r"no train\.tsv; train, valid and test are all needed"):
        load_client_folder(tmp_path / "three", 1)
    write(tmp_path / "four" / "mine.nt", LINES[: LINES.index("\n") + 1])
    with pytest.raises(DataError, match=r"mine\.nt has no validation triples"):
        load_client_folder(tmp_path / "four", 1)


def test_blank_nodes_of_clients_never_meet(tmp_path: Path) -> None:
    """Neither in their own files, nor in folders that partitions of different graphs have written."""
    blank = LINES.replace(f"<{E}e1>", "_:b")
    for client in (1, 2):
        write(tmp_path / "own" / f"client-{client}" / "g.nt", blank)
        (graph,) = partition(load_source(str(write(tmp_path / f"{client}.nt", blank))), 1, "triples", 0)
        assert "_:1.1" in graph.entities
        write_client_folder(client_folder(tmp_path / "parts", client), graph)
    for root in ("own", "parts"):
        one, two = (set(load_client_folder(tmp_path / root, client).entities) for client in (1, 2))
        assert {name for name in one & two if name.startswith("_:")} == set()
        assert len(one - two) == len(two - one) == 1
    assert "_:2:1.1" in load_client_folder(tmp_path / "parts", 2).entities


def test_names_that_no_tsv_holds_are_written_and_read_back(tmp_path: Path) -> None:
    rows = "".join(f'"{h}\t\n{r}","{r}","{t}\x1b[2J"\n' for h, r, t in TRIPLES)
    source = load_source(str(write(tmp_path / "g.csv", "head,relation,tail\n" + rows * 2)))
    graphs = [load_client_folder(write(tmp_path / "in" / "g.csv", "head,relation,tail\n" + rows).parent, 1)]
    assert isinstance(source, PooledSource)
    write_client_folder(tmp_path / "out", graphs[0], allow_leaky=True)
    assert (tmp_path / "out" / "train.csv").exists()
    again = load_client_folder(tmp_path / "out", 1)
    assert again.entities == graphs[0].entities
    assert names(again, "test") == names(graphs[0], "test")


# --- named graphs -----------------------------------------------------------------------------------------------------


def quads(tmp_path: Path, shared: int = 0) -> Path:
    """Triples dealt to three graphs, some in all of them, and one in the default graph."""
    lines = [f"<{E}default> <{E}r0> <{E}e0> .\n"]
    for number, (head, relation, tail) in enumerate(TRIPLES):
        for graph in range(3) if number < shared else [number % 3]:
            lines.append(f"<{head}> <{relation}> <{tail}> <{E}graph{graph}> .\n")
    return write(tmp_path / "g.nq", "".join(lines + lines[-1:]))


def test_each_named_graph_is_a_client(tmp_path: Path) -> None:
    path = quads(tmp_path, shared=20)
    source = load_source(str(path), graphs=True)
    assert isinstance(source, PooledSource)
    assert (source.left_out, source.duplicates) == (LeftOut(default_graph=1), 1)
    graphs = partition(source, 3, "graph", 3)
    for number, graph in enumerate(graphs):
        held = set().union(*(names(graph, part) for part in PARTS))
        assert held == {row for place, row in enumerate(TRIPLES) if place < 20 or place % 3 == number}
        assert names(graph, "train") >= set(TRIPLES[:20])  # held out by one, they would be trained on by another
        assert f"{E}default" not in graph.entities
        assert len(graph.valid)
        assert len(graph.test)
    assert faults(load_client(str(path), 3, 2, "graph", 3)).damage() == []
    assert len(load_graphs(RunConfig(dataset=str(path), by="graph"), None, 5)) == 3
    pooled = load_source(str(path))  # without the rule all graphs are one
    assert isinstance(pooled, PooledSource)
    assert len(pooled.triples) == len(TRIPLES) + 1


def test_wrong_named_graphs(tmp_path: Path) -> None:
    path = quads(tmp_path)
    with pytest.raises(DataError, match="has 3 named graphs, one for each client, not 4"):
        load_client(str(path), 4, 1, "graph", 0)
    for name, text, said in (("g.nt", LINES, "needs a format with named graphs"), ("h.nq", LINES, "no named graphs")):
        with pytest.raises(DataError, match=said):
            load_client(str(write(tmp_path / name, text)), 1, 1, "graph", 0)
    with pytest.raises(DataError, match="needs a format with named graphs"):
        load_client("nations", 2, 1, "graph", 0)
    with pytest.raises(DataError, match="read without its named graphs"):
        partition(load_source(str(path)), 3, "graph", 0)


# --- prefixes, and the server -----------------------------------------------------------------------------------------


def test_prefixes_shorten_names_for_people_only(tmp_path: Path) -> None:
    prefixes = {"e": E, "deep": f"{E}x/", "": "urn:a:", "bad prefix": "urn:b:", "rdf": "http://r#", "GO": f"{E}GO_"}
    cases = {f"{E}a": "e:a", f"{E}x/a": "deep:a", f"{E}y/a": f"{E}y/a", E: E, "urn:a:b": ":b", "urn:b:c": "urn:b:c"}
    cases |= {f"{E}GO_1": "GO:1", f"{E}GO_": "e:GO_", f"{E}GO": "e:GO", "none": "none", f"{E}a b": f"{E}a b"}
    assert {name: Shortener(prefixes).short(name) for name in cases} == cases
    shown, legend = short_names([f"{E}a", "e:a", "http://other/a"], prefixes)
    assert (shown, legend) == (["e:a", "'e:a'", "http://other/a"], [f"e: is {E}"])
    source = load_source(str(write(tmp_path / "g.ttl", f"@prefix e: <{E}> .\n@prefix no: <http://no/> .\n" + LINES)))
    for client, graph in enumerate(partition(source, 2, "triples", 0), start=1):
        write_client_folder(client_folder(tmp_path / "parts", client), graph)
        again = load_client_folder(tmp_path / "parts", client)
        assert again.entities == graph.entities
        assert again.prefixes == {"e": E}
    write(tmp_path / "parts" / "client-1" / "prefixes.toml", "e = 3")
    with pytest.raises(DataError, match="not a table of prefixes"):
        read_prefixes(tmp_path / "parts" / "client-1")


def test_many_prefixes_take_no_time(tmp_path: Path) -> None:
    """With time for each name and prefix, this would take hours. The file takes what it can hold."""
    for number, end in enumerate(("/", "_")):  # spaces of their own, or all in one
        prefixes = {f"p{place:05}": f"{E}{place:05}{end}" for place in range(20_000)}
        folder = tmp_path / str(number)
        folder.mkdir()
        started = time.process_time()
        write_prefixes(folder, [f"{space}{name}" for space in prefixes.values() for name in "ab"], prefixes)
        assert time.process_time() - started < 10
        kept = read_prefixes(folder)
        assert 100 < len(kept) == len(set(kept) & set(list(prefixes)[:400]))
        assert 11_000 < (folder / "prefixes.toml").stat().st_size <= 12_000


def test_the_server_opens_no_file_and_imports_no_parser(tmp_path: Path) -> None:
    code = """
import sys
from secure_kg.data.sources import check_source_name
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
for dataset in sys.argv[1:]:
    check_source_name(dataset)
loaded = {"pyoxigraph", "pyarrow", "torch"} & set(sys.modules)
sys.stdout.write("\\n".join([*(path for path in opened if not path.endswith((".py", ".pyc"))), *loaded]))
"""
    paths = [write(tmp_path / name, "") for name in ("g.ttl", "g.parquet", "in/only.nt.zst", "parts/train.csv")]
    arguments = [str(path if path.parent == tmp_path else path.parent) for path in paths]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == ""
