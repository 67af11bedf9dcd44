"""Training and ranking next to PyKEEN: `python -m benchmarks.kge --help`.

Our engine and PyKEEN's sLCWA training loop and rank-based evaluator do the same work in one process, in turns, so that
what disturbs the machine disturbs both: the same triples in their published split, initial rows, loss, optimiser, batch
size, number of negatives and threads. Training counts triples per second, the median over epochs without the first;
ranking counts test triples per second, each ranked at both ends. On a busy machine the figures per CPU second, of all
threads together, are the steadier ones. MRR is filtered, over the whole test part, after the same number of epochs.
`benchmarks.pykeen_peer` says how the two are made alike and where they cannot be. With `--against PATH`, another
checkout of this project takes PyKEEN's place.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from launch.command_line import OneLineParser, require_writable, run_command
from secure_kg.data.catalogue import BUNDLED, bundled_files, canonical
from secure_kg.data.graph import ClientGraph
from secure_kg.data.soundness import check_complete
from secure_kg.data.triples import PARTS, part_file, read_triples, shown
from secure_kg.data.vocabulary import encode
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import DataError, UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS
from secure_kg.runs.run_folder import write_json

if TYPE_CHECKING:
    from benchmarks.pykeen_peer import PyKeenPeer
    from secure_kg.learning.kge import KgeLearner

T = TypeVar("T")

COMPARABLE: Final = tuple(model for model in MODELS if model in ("TransE", "RotatE", "DistMult", "ComplEx", "RESCAL"))
"""Our models that PyKEEN has too."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Some triples, and the seconds they took by the clock and of this process: others may use the machine too."""

    triples: int
    seconds: float
    cpu_seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    for name in ("epochs", "repeats", "threads"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} must be at least 1")
    for name in ("eval_limit", "seed"):
        if getattr(options, name) < 0:
            raise UserError(f"--{name.replace('_', '-')} must not be negative")
    if options.seed >= 2**32:
        raise UserError("--seed must be below 2^32, as PyKEEN asks")
    if options.threads > (cores := os.cpu_count() or 1):
        raise UserError(f"--threads {options.threads}: this machine has {cores} cores")
    config = _config(options)
    graph = published_split(options.dataset)
    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    # Ours never draws an entity twice for a triple; on a small graph PyKEEN must not be given more to do either.
    config = dataclasses.replace(config, negatives=min(config.negatives, len(graph.entities)))
    if options.against is not None:
        from benchmarks.against import run

        return run(config, options, _setting(graph, config, options))
    report = measure(graph, config, options)
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
        return 0
    show(report)
    if options.json:
        write_json(Path(options.json), report)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.kge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.kge --dataset umls --model distmult --epochs 20 --json kge.json\n"
        "example, a folder with train.tsv, valid.tsv and test.tsv, one line for each triple:\n"
        "  python -m benchmarks.kge --dataset data/mygraph --model transe --epochs 5 --json kge.json",
        allow_abbrev=False,
    )
    known = "|".join(COMPARABLE).lower()
    parser.add_argument(
        "--dataset",
        default="umls",
        metavar="PATH",
        help=f"folder with train, valid and test as .tsv or .txt, or .gz of these; or one of {', '.join(BUNDLED)} "
        "[umls]",
    )
    parser.add_argument("--model", default="transe", metavar=known, help="embedding model [transe]")
    parser.add_argument("--dim", type=int, default=128, help="embedding dimension, complex for some models [128]")
    parser.add_argument("--negatives", type=int, default=256, metavar="N", help="negatives for each triple [256]")
    parser.add_argument("--batch-size", type=int, default=512, metavar="B", help="triples in a batch [512]")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate of Adam [0.001]")
    parser.add_argument(
        "--margin",
        type=float,
        default=10.0,
        help="of distance models; for all models, initial rows are uniform in ±(margin + 2) / dim [10]",
    )
    parser.add_argument("--epochs", type=int, default=5, metavar="E", help="of each; the first is a warm-up [5]")
    parser.add_argument("--repeats", type=int, default=3, metavar="R", help="timed rankings of each [3]")
    parser.add_argument(
        "--eval-limit",
        type=int,
        default=1000,
        metavar="N",
        help="after its first ranking, of the whole test part, PyKEEN ranks only so many triples, to save time; "
        "0: all [1000]",
    )
    parser.add_argument(
        "--filter-negatives",
        action="store_true",
        help="let PyKEEN leave out negatives that are train triples, as ours always does; it is a little slower then",
    )
    parser.add_argument("--against", metavar="PATH", help="compare with that checkout of this project, not with PyKEEN")
    parser.add_argument("--threads", type=int, default=1, metavar="T", help="of torch, for both [1]")
    parser.add_argument("--seed", type=int, default=0, help="of rows, order and negatives [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _config(options: argparse.Namespace) -> TrainingConfig:
    """One epoch per round, both ends corrupted; refuses what cannot be trained."""
    names = {model.lower(): model for model in COMPARABLE}
    if options.model.lower() not in names:
        raise UserError(f"--model {shown(options.model)}: not one of {', '.join(names)}")
    return TrainingConfig(
        model=names[options.model.lower()],
        dim=options.dim,
        negatives=options.negatives,
        margin=options.margin,
        lr=options.lr,
        batch_size=options.batch_size,
        local_epochs=1,
        corrupt="both",
    )


def published_split(dataset: str) -> ClientGraph:
    """The graph as its publishers divided it, as one client's; elsewhere the parts are pooled and divided anew.

    It need not be sound: some published test parts have entities that nothing trains. Both sides rank them alike.
    """
    folder = Path(dataset)
    if canonical(dataset) in BUNDLED:
        files = bundled_files(canonical(dataset))
    elif dataset and folder.is_dir():
        files = tuple(path for part in PARTS if (path := part_file(folder, part)) is not None)
        if len(files) < len(PARTS):
            raise DataError(f"{shown(folder)}: train, valid and test files are all needed")
    else:
        raise DataError(f"{shown(dataset) or '(empty)'}: neither a folder nor one of {', '.join(BUNDLED)}")
    entities, relations, parts = encode([read_triples(path) for path in files])
    graph = ClientGraph(entities, relations, *parts)
    check_complete(graph, shown(dataset), "all three parts are needed")
    return graph


def measure(graph: ClientGraph, config: TrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from benchmarks.pykeen_peer import PyKeenPeer, fastest_in_parts, loss_margin
    from secure_kg.learning.kge import KgeLearner

    torch.set_num_threads(options.threads)
    ours = KgeLearner(graph, config, torch.device("cpu"), options.seed, 1)
    peer = PyKeenPeer(ours, options.seed, options.filter_negatives)
    training = _train_in_turns(ours, peer, graph, options)
    ranking, mrr = _rank_in_turns(ours, peer, graph, options)

    _tell(options, "PyKEEN with its batches in parts")
    size, per_second, per_cpu_second = fastest_in_parts(ours, options.seed, options.filter_negatives)
    sides = {side: _figures(training[side], ranking[side], mrr[side]) for side in ("ours", "pykeen")}
    if per_cpu_second <= sides["pykeen"]["train_triples_per_cpu_s"]:
        size, per_second = peer.sub_batch, sides["pykeen"]["train_triples_per_s"]
        per_cpu_second = sides["pykeen"]["train_triples_per_cpu_s"]
    sides["pykeen"] |= {
        "eval_batch": peer.eval_batch,
        "train_sub_batch": peer.sub_batch,
        "filter_negatives": options.filter_negatives,
        "loss_margin": loss_margin(config),
        "in_parts": {"size": size, "train_triples_per_s": per_second, "train_triples_per_cpu_s": per_cpu_second},
    }
    return {
        **_setting(graph, config, options),
        "versions": {"torch": torch.__version__, "pykeen": version("pykeen")},
        **sides,
        "train_speedup": _ratio(sides, "train_triples_per_s"),
        "eval_speedup": _ratio(sides, "eval_triples_per_s"),
        "train_cpu_speedup": _ratio(sides, "train_triples_per_cpu_s"),
        "eval_cpu_speedup": _ratio(sides, "eval_triples_per_cpu_s"),
        "train_speedup_in_parts": sides["ours"]["train_triples_per_cpu_s"] / per_cpu_second,
    }


def _tell(options: argparse.Namespace, text: str) -> None:
    if options.json != "-":
        say(text)


def _train_in_turns(
    ours: "KgeLearner", peer: "PyKeenPeer", graph: ClientGraph, options: argparse.Namespace
) -> dict[str, list[Timing]]:
    """Epochs of either side, one after the other."""
    training: dict[str, list[Timing]] = {"ours": [], "pykeen": []}
    for epoch in range(options.epochs):
        training["ours"].append(_timed(partial(ours.train, epoch), len(graph.train)))
        training["pykeen"].append(_timed(peer.train_epoch, len(graph.train)))
        _tell(options, f"epoch {epoch + 1}/{options.epochs}: {_in_turn(training)}")
    return training


def _rank_in_turns(
    ours: "KgeLearner", peer: "PyKeenPeer", graph: ClientGraph, options: argparse.Namespace
) -> tuple[dict[str, list[Timing]], dict[str, float]]:
    """Rankings of either side, one after the other, and the MRR of both."""
    mrr = {"ours": ours.rank("test", "both").metrics()["mrr"]}  # also a warm-up
    peer.choose_eval_batch()
    ranking: dict[str, list[Timing]] = {"ours": [], "pykeen": []}
    for turn in range(options.repeats):
        triples = graph.test if turn == 0 else graph.test[: options.eval_limit or None]
        ranking["ours"].append(_timed(partial(ours.rank, "test", "both"), len(graph.test)))
        timing, found = _timed_with_result(partial(peer.evaluate, triples), len(triples))
        ranking["pykeen"].append(timing)
        mrr.setdefault("pykeen", found)  # of the first, which ranks the whole part
        _tell(options, f"ranking {turn + 1}/{options.repeats}: {_in_turn(ranking)}")
    return ranking, mrr


def _setting(graph: ClientGraph, config: TrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    """Data, model and command of a measurement."""
    return {
        "dataset": canonical(options.dataset) if canonical(options.dataset) in BUNDLED else _name(options.dataset),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "train_triples": len(graph.train),
        "test_triples": len(graph.test),
        "evaluated_triples": len(graph.test),
        "sides": "both",
        "model": config.model,
        "dim": config.dim,
        "negatives": config.negatives,
        "share_negatives": config.share_negatives,
        "batch": config.batch_size,
        "lr": config.lr,
        "margin": config.margin,
        "temperature": config.temperature,
        "epochs": options.epochs,
        "repeats": options.repeats,
        "threads": options.threads,
        "seed": options.seed,
    }


def show(report: dict[str, Any]) -> None:
    ours, pykeen = report["ours"], report["pykeen"]
    rows: list[list[str | int]] = [
        [what, _text(ours[name]), _text(pykeen[name]), f"{ours[name] / pykeen[name]:.2f}"]
        for what, name in (
            ("training, triples/s", "train_triples_per_s"),
            ("ranking, triples/s", "eval_triples_per_s"),
            ("training, triples per CPU second", "train_triples_per_cpu_s"),
            ("ranking, triples per CPU second", "eval_triples_per_cpu_s"),
            ("test MRR", "mrr"),
        )
    ]
    parts = pykeen["in_parts"]
    tuned, ratio = parts["train_triples_per_cpu_s"], report["train_speedup_in_parts"]
    own = _text(ours["train_triples_per_cpu_s"])
    rows.insert(3, [f"the same, PyKEEN in parts of {parts['size']}", own, _text(tuned), f"{ratio:.2f}"])
    title = f"{report['dataset']}, {report['model']} {report['dim']}: {report['epochs']} epochs"
    table(title, ("", "ours", f"PyKEEN {report['versions']['pykeen']}", "ratio"), rows)
    say(
        f"{report['train_triples']:,} train triples, batches of {report['batch']} with {report['negatives']} negatives "
        f"each; {report['test_triples']:,} test triples ranked at both ends among {report['entities']:,} entities, "
        f"filtered; {report['threads']} thread(s), torch {report['versions']['torch']}; the two took turns, medians"
    )


def _timed_with_result(work: Callable[[], T], triples: int) -> tuple[Timing, T]:
    started, cpu_started = time.perf_counter(), time.process_time()
    result = work()
    return Timing(triples, time.perf_counter() - started, time.process_time() - cpu_started), result


def _timed(work: Callable[[], object], triples: int) -> Timing:
    return _timed_with_result(work, triples)[0]


def _figures(training: list[Timing], ranking: list[Timing], mrr: float) -> dict[str, Any]:
    steady = training[1:] or training
    return {
        "train_triples_per_s": statistics.median(timing.triples / timing.seconds for timing in steady),
        "eval_triples_per_s": statistics.median(timing.triples / timing.seconds for timing in ranking),
        "mrr": mrr,
        "train_triples_per_cpu_s": statistics.median(timing.triples / timing.cpu_seconds for timing in steady),
        "eval_triples_per_cpu_s": statistics.median(timing.triples / timing.cpu_seconds for timing in ranking),
        "training": [asdict(timing) for timing in training],
        "ranking": [asdict(timing) for timing in ranking],
    }


def _ratio(sides: dict[str, dict[str, Any]], name: str) -> float:
    return float(sides["ours"][name] / sides["pykeen"][name])


def _in_turn(timings: dict[str, list[Timing]]) -> str:
    ours, pykeen = timings["ours"][-1], timings["pykeen"][-1]
    return f"ours {ours.triples:,} triples in {ours.seconds:.2f} s, PyKEEN {pykeen.triples:,} in {pykeen.seconds:.2f} s"


def _name(dataset: str) -> str:
    """The folder's own name: where it stands on this machine is nobody's business."""
    return Path(dataset).resolve().name


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.4f}"


if __name__ == "__main__":
    sys.exit(main())
