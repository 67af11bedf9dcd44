"""FedE's model fusion after training: `python -m launch.fuse FEDE_RUN LOCAL_RUN --out DIR`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from launch.command_line import OneLineParser, require_json, require_writable, run_command
from launch.using import add_device
from secure_kg.data.folders import make_empty_folder, require_new_or_empty
from secure_kg.evaluation.metric_names import METRICS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.progress import tracked
from secure_kg.runs.checkpoint import load_arrays
from secure_kg.runs.records.fusion import FusedClient, FusedRun, FusedTotal, FusionOptions, FusionRecord
from secure_kg.runs.records.summary import TITLES, written
from secure_kg.runs.run_folder import RunFolder, read_config, write_json

if TYPE_CHECKING:
    from secure_kg.fusion.fusing import Fusion, Ranked

_DESCRIPTION = """\
Join each client's federated model with the one it trained alone (FedE, Chen et al. 2021, section 2.2.3).

Every client by itself learns two weights, s = w1 f_single + w2 f_federated + b, by the margin ranking loss on its own
train triples, and its own validation triples decide between the epochs and either model alone. It reads its own graph
and its own models in clients/K of both runs, and sends nothing to anybody."""

_EXAMPLE = """\
example:
  mpirun -n 4 python -m launch.fede  --dataset kinships --by relations --out runs/fede
  mpirun -n 4 python -m launch.local --dataset kinships --by relations --out runs/local
  python -m launch.fuse runs/fede runs/local --out runs/fused
  python -m launch.fuse runs/fede runs/local --out own --client 2      client 2 alone, who has no other's folder

Both runs must be complete and have the same data, seed, clients and model. DIR gets fusion.json."""

_SAME = ("dataset", "by", "client_data", "clients", "seed")


def main(argv: Sequence[str] | None = None) -> int:
    """0: written. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.fuse"),
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("federated", metavar="FEDE_RUN", type=Path, help="run folder of launch.fede (or fedr_secagg)")
    parser.add_argument("single", metavar="LOCAL_RUN", type=Path, help="run folder of launch.local")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="new or empty folder")
    parser.add_argument("--client", type=int, metavar="K", help="this client only [all whose folders are here]")
    parser.add_argument("--client-data", metavar="DIR", help="where the client's own data are now [as in the runs]")
    parser.add_argument(
        "--fit",
        choices=("train", "valid"),
        default="train",
        help="the part the weights are fitted to: train as in the paper's text, or valid as in its code [train]",
    )
    parser.add_argument("--beta", type=float, default=10.0, metavar="B", help="margin of the loss [10]")
    parser.add_argument("--epochs", type=int, default=10, metavar="N", help="passes over the pairs [10]")
    parser.add_argument("--negatives", type=int, default=64, metavar="N", help="negatives per triple [64]")
    add_device(parser, "auto")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    for name in ("beta", "epochs", "negatives"):
        if not 0 < getattr(options, name) < 1e9:
            raise UserError(f"--{name} must be a positive number")
    require_new_or_empty(options.out)
    require_writable(options.out / "fusion.json")
    require_json(options.json)
    federated, single = _finished(options.federated), _finished(options.single)
    if options.client_data is not None:
        federated, single = (dataclasses.replace(one, client_data=options.client_data) for one in (federated, single))
    _check_fit_together(options, federated, single)
    clients = _clients(options, federated)
    fused = {number: _fuse(options, number, federated, single) for number in tracked(clients, "fusing clients")}

    make_empty_folder(options.out)
    title = STRATEGIES[federated.strategy].title
    record = _record(options, federated, fused)
    write_json(options.out / "fusion.json", record.to_json())
    if options.json == "-":
        say(json.dumps(record.to_json(), indent=2))
        return 0
    for number, fusion in fused.items():
        _show(f"client {number}: test, tail side, filtered", title, fusion.test)
        weights = f"{fusion.weights.single:.4g} single + {fusion.weights.federated:.4g} {title}"
        say(f"client {number}: {weights}, {fusion.chosen}, by validation MRR {fusion.valid_mrr['fused']:.4f}")
        if min(fusion.weights.single, fusion.weights.federated) < 0:
            say(f"client {number}: a weight is negative: that model ranks its train triples upside down")
    if len(fused) > 1:
        _show(f"all {len(fused)} clients, every test triple alike", title, _total(list(fused.values())))
    if options.json is not None:
        write_json(Path(options.json), record.to_json())
    scores = record.all
    say(
        f"test MRR: single {scores.single['mrr']:.4f}, {title} {scores.federated['mrr']:.4f}, "
        f"fused {scores.fused['mrr']:.4f}; written to {options.out / 'fusion.json'}"
    )
    return 0


def _finished(path: Path) -> RunConfig:
    config = read_config(path)
    if config.clients is None:
        raise UserError(f"{path}: its config.toml does not say how many clients there are")
    return config


def _check_fit_together(options: argparse.Namespace, federated: RunConfig, single: RunConfig) -> None:
    """The two models must stand for the same entities, and none may have trained on what tests the other."""
    if STRATEGIES[federated.strategy].shared is None:
        raise UserError(f"{options.federated}: a run of strategy {federated.strategy}, which shares nothing")
    if federated.queries is not None:
        raise UserError(f"{options.federated}: a run of strategy {federated.strategy}; only models of triples fuse")
    for name, run in ((options.federated, federated), (options.single, single)):
        if run.network is not None:
            raise UserError(f"{name}: a run of the graph network {run.model}; only embeddings fuse")
        if run.model == "counts":
            raise UserError(f"{name}: a run of --dp counts has a table of counts, and no model that could be fused")
    if single.strategy != "local":
        how = f"{command('launch.local')} with the same options trains one"
        raise UserError(f"{options.single}: a run of strategy {single.strategy}, not local; {how}")
    for name in _SAME:
        theirs, own = getattr(federated, name), getattr(single, name)
        if theirs != own:
            raise UserError(f"the two runs differ in {name}: {theirs} and {own}")
    if federated.model != single.model:
        raise UserError(f"the two runs differ in model: {federated.model} and {single.model}")


def _clients(options: argparse.Namespace, config: RunConfig) -> list[int]:
    """Who has both models here."""
    numbers = range(1, (config.clients or 0) + 1)
    if options.client is not None:
        if options.client not in numbers:
            raise UserError(f"--client {options.client}: the runs have clients 1 to {config.clients}")
        numbers = range(options.client, options.client + 1)
    for run in (options.federated, options.single):
        missing = [number for number in numbers if not _model_path(run, number).is_file()]
        if missing:
            why = "run not complete, client dropped out, or elsewhere: --client K"
            raise UserError(f"{_model_path(run, missing[0])}: not there ({why})")
    return list(numbers)


def _model_path(run: Path, client: int) -> Path:
    return RunFolder(run).client(client) / "model.safetensors"


def _fuse(options: argparse.Namespace, number: int, federated: RunConfig, single: RunConfig) -> "Fusion":
    from secure_kg.data.client_data import load_graph
    from secure_kg.fusion.fit import FusionSettings
    from secure_kg.fusion.fusing import fuse, saved_model
    from secure_kg.learning.device import pick_device

    graph, device = load_graph(federated, federated.clients or number, number), pick_device(0, options.device)
    own, shared = (
        saved_model(load_arrays(_model_path(run, number))[0], config.training, graph, device)
        for run, config in ((options.single, single), (options.federated, federated))
    )
    settings = FusionSettings(options.beta, options.epochs, options.negatives, options.fit)
    return fuse((own, shared), graph, settings, federated.seed, number, device)


def _total(fusions: "list[Fusion]") -> "dict[str, Ranked]":
    total = dict(fusions[0].test)
    for fusion in fusions[1:]:
        total = {name: ranked + fusion.test[name] for name, ranked in total.items()}
    return total


def _record(options: argparse.Namespace, config: RunConfig, fused: "dict[int, Fusion]") -> FusionRecord:
    total = _total(list(fused.values()))
    return FusionRecord(
        federated=FusedRun(run=str(options.federated), strategy=config.strategy),
        single=FusedRun(run=str(options.single)),
        model=config.training.model,
        settings=FusionOptions(fit=options.fit, beta=options.beta, epochs=options.epochs, negatives=options.negatives),
        clients=[
            FusedClient(
                client=number,
                test_triples=fusion.test["fused"].tail.count,
                weights=dataclasses.asdict(fusion.weights),
                chosen=fusion.chosen,
                valid_mrr=fusion.valid_mrr,
                losses=[epoch.loss for epoch in fusion.epochs],
                **{name: ranked.record() for name, ranked in fusion.test.items()},
            )
            for number, fusion in fused.items()
        ],
        all=FusedTotal(
            test_triples=total["fused"].tail.count, **{name: ranked.record() for name, ranked in total.items()}
        ),
    )


def _show(title: str, federated: str, test: "dict[str, Ranked]") -> None:
    names = {"single": "single", "federated": federated, "fused": "fused"}
    figures = {names[name]: ranked.tail.metrics() for name, ranked in test.items()}
    rows = [[name, *(written(one, told[one]) for one in METRICS)] for name, told in figures.items()]
    table(title, ("", *(TITLES[one] for one in METRICS)), rows)


if __name__ == "__main__":
    sys.exit(main())
