"""Divide a data set among clients and write one folder for each: `python -m launch.partition --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launch.command_line import OneLineParser, run_command
from launch.reading_options import add_reading_options, reading_of
from secure_kg.data.folders import client_folder, make_empty_folder, write_client_folder, write_record
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import RULES, By, partition
from secure_kg.data.soundness import Faults, check_split, faults
from secure_kg.data.sources import FederatedSource, PooledSource, load_source
from secure_kg.data.triples import shown
from secure_kg.foundation.console import say, table
from secure_kg.foundation.invocation import command
from secure_kg.foundation.words import counted

_DESCRIPTION = """\
Divide a data set among clients and write one folder for each client.

Every client's triples are divided 80/10/10 into train.tsv, valid.tsv and test.tsv so that all names of
valid and test also occur in train; published parts (--by whole, .npz) stay as they are. partition.toml
records how it was done and what came out. A part with tabs or line ends in names is written as .csv."""

_EXAMPLE = """\
example:
  python -m launch.partition --dataset umls --clients 5 --by relations --seed 0 --out parts
  writes parts/client-1 ... parts/client-5; hand each client its own folder and nothing else.
  python -m launch.partition --dataset my.ttl --clients 3 --out parts

data sets: umls, kinships, nations (included); any other PyKEEN name (downloaded); one file of triples (.tsv,
.csv, .nt, .ttl, .nq, .trig, .rdf, .jsonld, .parquet, exports of Neo4j; docs/data.md has the rules); a folder with
train, valid and test files; a published federated split .npz (--by and --seed do not apply)."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: written. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=command("launch.partition"),
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--dataset", required=True, help="name, folder or file; see below")
    parser.add_argument("--clients", required=True, type=int, metavar="N", help="number of clients, from 1")
    parser.add_argument(
        "--by",
        choices=RULES,
        default="triples",
        help="triples: dealt out equally (FedR; default); relations: divided, no overlap (FedE, FedCQA); "
        "entities: each has a home client, where its outgoing triples go; graph: each named graph is a client; whole: "
        "not divided: the data set's own train, valid and test parts as published, as one client",
    )
    add_reading_options(parser)
    parser.add_argument(
        "--allow-leaky-split",
        action="store_true",
        help="write published parts even if held-out triples also stand in train or triples are repeated",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="same seed, same folders (default 0)")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="new or empty folder")
    return parser


def _run(options: argparse.Namespace) -> int:
    out: Path = options.out
    by: By = options.by
    source = load_source(options.dataset, reading_of(options), graphs=by == "graph")
    graphs = partition(source, options.clients, by, options.seed)
    # All of them before the first file is written.
    found = check_split(graphs, shown(options.dataset), allow_leaky=options.allow_leaky_split)
    record: dict[str, Any] = {"dataset": shown(options.dataset), "clients": options.clients}
    if isinstance(source, FederatedSource):
        record |= {"by": "published"}
    else:
        if by == "whole":
            record |= {"by": by, "duplicates_removed": found.dropped_repeats}
        else:
            record |= {"by": by, "seed": options.seed, "duplicates_removed": source.duplicates}
        if left_out := source.left_out.counts():
            record |= {"left_out": left_out}
    counts = [{"number": number, **_counts(graph)} for number, graph in enumerate(graphs, start=1)]
    # Of what was divided here there is nothing to tell.
    told = [{"faults": faults(graph).counts()} if found.damage() or found.blemishes() else {} for graph in graphs]

    make_empty_folder(out)
    for number, graph in enumerate(graphs, start=1):
        write_client_folder(client_folder(out, number), graph, allow_leaky=options.allow_leaky_split)
    clients = [count | more for count, more in zip(counts, told, strict=True)]
    write_record(out / "partition.toml", {**record, "client": clients})

    _say_faults(found)
    table(
        f"{record['dataset']} by {record['by']}, {counted(options.clients, 'client')}",
        ("client", *tuple(counts[0])[1:]),
        [tuple(row.values()) for row in counts],
    )
    if removed := record.get("duplicates_removed"):
        say(f"{removed} repeated triples removed")
    if isinstance(source, PooledSource) and (phrases := source.left_out.phrases()):
        say(f"left out: {'; '.join(phrases)}")
    say(f"written to {shown(out)}")
    return 0


def _say_faults(found: Faults) -> None:
    if damage := found.damage():
        say(f"LEAKY SPLIT: {'; '.join(damage)}")
    if blemishes := found.blemishes():
        say(f"taken as published: {'; '.join(blemishes)}")


def _counts(graph: ClientGraph) -> dict[str, int]:
    return {
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "train": len(graph.train),
        "valid": len(graph.valid),
        "test": len(graph.test),
    }


if __name__ == "__main__":
    sys.exit(main())
