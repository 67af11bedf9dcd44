"""Speed of reading graphs: `python -m benchmarks.reading --help`.

A graph is drawn by a seed and written in each format; then a process of its own reads each file into ids, as
`--dataset FILE` does, and tells its processor seconds and the most memory that it held. Beside it stands the parser
alone (pyoxigraph), whose triples go nowhere. One triple in five has a literal, and is dropped.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.readers.encoding import encode_files
from secure_kg.data.readers.interface import Reading
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator

SPACE: Final = "http://example.org/resource/"
FORMATS: Final = (".nt", ".ttl", ".nq", ".rdf", ".jsonld", ".tsv", ".csv", ".parquet", ".nt.gz", ".nt.zst")
PARSED: Final = (".nt", ".ttl", ".nq", ".rdf", ".jsonld")
"""Formats that the parser is also timed on alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.reading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--triples", type=int, default=500_000, metavar="N", help="size of the drawn graph [500000]")
    parser.add_argument("--formats", default=",".join(FORMATS), metavar="LIST", help="suffixes, by commas [all]")
    parser.add_argument("--file", type=Path, help="read this file instead, in this process")
    parser.add_argument("--alone", action="store_true", help="with --file: the parser alone")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    require_json(options.json)
    if options.file is not None:
        found = parsed_alone(options.file) if options.alone else measured(options.file)
        deliver(found, options.json, lambda record: say(f"{record['triples_per_second']:,} triples per second"))
        return 0
    formats = options.formats.split(",")
    if options.triples < 100 or not set(formats) <= set(FORMATS):
        raise UserError(f"--triples from 100 on, --formats of {','.join(FORMATS)}")
    with tempfile.TemporaryDirectory() as folder:
        lines = [_in_process(suffix, _written(Path(folder), suffix, options.triples)) for suffix in formats]
    deliver({"triples": options.triples, "formats": lines}, options.json, _show)
    return 0


def measured(path: Path) -> dict[str, Any]:
    """Processor seconds of reading a file into ids."""
    start = time.process_time()
    found = encode_files([("1", path)], Reading())
    seconds = time.process_time() - start
    triples = len(found.parts[0]) + found.left_out.literals
    return {
        "triples": triples,
        "cpu_seconds": seconds,
        "triples_per_second": round(triples / seconds),
        "peak_mb": _peak_mb(),
    }


def _peak_mb() -> float:
    """Of this process alone: `getrusage` also tells what the process held that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) / 1024


def parsed_alone(path: Path) -> dict[str, Any]:
    """Processor seconds of the parser, which hands over each triple and does nothing with it."""
    import pyoxigraph

    start = time.process_time()
    triples = sum(1 for _ in pyoxigraph.parse(path=str(path)))
    seconds = time.process_time() - start
    return {"triples": triples, "cpu_seconds": seconds, "triples_per_second": round(triples / seconds)}


def _in_process(suffix: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.reading", "--file", str(path), "--json", "-"]
    told = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout)]
    if suffix in PARSED:
        alone = subprocess.run([*command, "--alone"], check=True, capture_output=True)
        told.append(json.loads(alone.stdout))
    size = path.stat().st_size
    path.unlink()
    return {
        "format": suffix,
        "bytes": size,
        **told[0],
        "parser_alone_per_second": told[1]["triples_per_second"] if len(told) > 1 else None,
    }


def drawn(triples: int) -> list[tuple[int, int, int]]:
    """Heads and tails of a tenth as many entities, by 50 relations; relation 0 leads to literals."""
    rng = generator(0, "benchmark of reading")
    entities = max(10, triples // 10)
    heads = np.sort(rng.integers(entities, size=triples))
    relations = np.where(rng.random(triples) < 0.2, 0, rng.integers(1, 51, size=triples))
    rows = zip(heads.tolist(), relations.tolist(), rng.integers(entities, size=triples).tolist(), strict=True)
    return list(rows)


def _written(folder: Path, suffix: str, triples: int) -> Path:
    path, rows = folder / f"graph{suffix}", drawn(triples)
    named = [(f"{SPACE}e{h}", f"{SPACE}r{r}", f"{SPACE}e{t}" if r else f"label {t}") for h, r, t in rows]
    if suffix in (".tsv", ".csv", ".parquet"):
        _write_table(path, named)
        return path
    if suffix in (".ttl", ".rdf", ".jsonld"):
        path.write_text(_nested(suffix, rows), encoding="utf-8")
        return path
    graph = f" <{SPACE}graph>" if suffix == ".nq" else ""
    tails = [f"<{tail}>" if row[1] else f'"{tail}"@en' for (_, _, tail), row in zip(named, rows, strict=True)]
    lines = (f"<{head}> <{link}> {tail}{graph} .\n" for (head, link, _), tail in zip(named, tails, strict=True))
    data = "".join(lines).encode()
    path.write_bytes(_packed(suffix, data))
    return path


def _packed(suffix: str, data: bytes) -> bytes:
    if suffix.endswith(".gz"):
        import gzip

        return gzip.compress(data)
    if suffix.endswith(".zst"):
        import pyarrow

        packed: bytes = pyarrow.compress(data, "zstd", asbytes=True)
        return packed
    return data


def _write_table(path: Path, named: list[tuple[str, str, str]]) -> None:
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        columns = zip(("head", "relation", "tail"), zip(*named, strict=True), strict=True)
        parquet.write_table(pyarrow.table({name: list(column) for name, column in columns}), path)
        return
    mark = "," if path.suffix == ".csv" else "\t"
    path.write_text("".join(f"{mark.join(row)}\n" for row in [("head", "relation", "tail"), *named]), encoding="utf-8")


def _nested(suffix: str, rows: list[tuple[int, int, int]]) -> str:
    """Triples grouped by their heads, as people write them."""
    by_head: dict[int, list[tuple[int, int]]] = {}
    for head, relation, tail in rows:
        by_head.setdefault(head, []).append((relation, tail))
    if suffix == ".ttl":
        said = {h: [f"e:r{r} " + (f"e:e{t}" if r else f'"label {t}"@en') for r, t in own] for h, own in by_head.items()}
        between = " ;\n    "
        return f"@prefix e: <{SPACE}> .\n" + "".join(f"e:e{h} {between.join(own)} .\n" for h, own in said.items())
    if suffix == ".rdf":
        body = "".join(
            f'<rdf:Description rdf:about="{SPACE}e{h}">\n'
            + "".join(f'<e:r{r} rdf:resource="{SPACE}e{t}"/>\n' if r else f"<e:r0>label {t}</e:r0>\n" for r, t in own)
            + "</rdf:Description>\n"
            for h, own in by_head.items()
        )
        space = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        return f'<rdf:RDF xmlns:rdf="{space}" xmlns:e="{SPACE}">\n{body}</rdf:RDF>\n'
    nodes = []
    for h, own in by_head.items():
        node: dict[str, Any] = {"@id": f"e:e{h}"}
        for r, t in own:
            node.setdefault(f"e:r{r}", []).append({"@id": f"e:e{t}"} if r else f"label {t}")
        nodes.append(node)
    return json.dumps({"@context": {"e": SPACE}, "@graph": nodes}, indent=1)


def _show(record: dict[str, Any]) -> None:
    rows = [
        [
            line["format"],
            round(line["bytes"] / 1e6),
            line["triples_per_second"],
            f"{line['parser_alone_per_second']:,}" if line["parser_alone_per_second"] else "",
            round(line["peak_mb"]),
        ]
        for line in record["formats"]
    ]
    columns = ("format", "MB", "triples per processor second", "parser alone", "most memory, MB")
    table(f"{record['triples']:,} triples", columns, rows)


if __name__ == "__main__":
    sys.exit(main())
