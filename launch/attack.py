"""Membership attacks: `python -m launch.attack --dataset D --out DIR`, or on a recorded run: `... RUN --out DIR`."""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from secure_kg.attacks.truth import Truth
from secure_kg.audit.records.membership import MembershipReport
from secure_kg.audit.view.read import AuditedRun, open_run
from secure_kg.data.client_data import load_graph, load_graphs
from secure_kg.data.partition import DIVIDING_RULES
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS
from secure_kg.report.membership_page import TITLES, membership_page
from secure_kg.runs.run_folder import write_json, write_whole

_DESCRIPTION = """\
Try to tell which triples a client trains on, and report how far that gets: the attacks of DP-FLames (section 3) as
printed and mended, between an attacker without the federation and one that has the victim's whole model.

Without RUN a federation is staged in this process: the data set is divided, canaries (random triples) are planted at
client 2 by a coin, client 1 attacks, and everybody runs the federation's own code. With RUN the server's attacks are
tried on the transcript of a finished FedE run, on real members against held-out triples."""

_EXAMPLE = """\
example:
  python -m launch.attack --dataset umls --out attacks/umls
  python -m launch.attack --dataset DIR/fb15k-237 --aggregation secagg --rounds 20 --out attacks/secagg
  python -m launch.attack runs/plain --out attacks/plain           a run that was started with --transcript

DIR gets attack.html, for people, and attack.json. Exit code 0: done. 2: a mistake, told in one line."""

_USUAL: Final = {
    "clients": 3,
    "by": "entities",
    "aggregation": "plain",
    "alignment": "psu",
    "rounds": 20,
    "canaries": 500,
    "groups": 4,
    "seed": 0,
}
_USUAL_TRAINING: Final = {"model": "TransE", "dim": 64, "negatives": 64, "lr": 0.003, "local_epochs": 3}
_MOST_TARGETS: Final = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=command("launch.attack"),
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", type=Path, nargs="?", help="folder of a FedE run with a transcript")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where attack.html and attack.json go")
    parser.add_argument("--json", metavar="FILE", help="write attack.json to FILE as well; - for standard output")
    parser.add_argument("--every", type=int, metavar="K", help="attack after every K rounds [5; of RUN the last only]")
    parser.add_argument("--targets", type=int, default=_MOST_TARGETS, metavar="N", help="real members at most [1000]")
    _add_recorded(parser.add_argument_group("with RUN"))
    _add_staged(parser.add_argument_group("without RUN"))
    return parser


def _add_recorded(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--truth", type=Path, metavar="DIR", help="the clients' folders [RUN/clients]")
    group.add_argument("--client-data", metavar="DIR", help="the clients' triples, if not where the run had them")
    group.add_argument("--colluder", type=int, metavar="K", help="the client on the server's side [1]")


def _add_staged(group: argparse._ArgumentGroup) -> None:
    """No defaults here: what is given beside RUN must be noticed."""
    group.add_argument("--dataset", help="umls, kinships, nations; a folder with train.tsv ...; a triple file")
    group.add_argument("--clients", type=int, metavar="N", help="at least 2; from 3 on attribution is tried [3]")
    group.add_argument("--by", choices=list(DIVIDING_RULES), help="how triples are divided [entities]")
    group.add_argument("--aggregation", choices=list(AGGREGATIONS), help="how rows are added up [plain]")
    group.add_argument("--alignment", choices=list(ALIGNMENTS), help="how names are aligned [psu]")
    group.add_argument("--min-holders", type=int, metavar="N", help="least holders of a row that is added up")
    group.add_argument("--rounds", type=int, metavar="R", help="of honest training; the active attack comes after [20]")
    group.add_argument("--canaries", type=int, metavar="N", help="so many are planted, and so many are not [500]")
    group.add_argument("--groups", type=int, metavar="G", help="groups of targets of the active attack [4]")
    group.add_argument(
        "--active", nargs="*", metavar="KIND", help="targets of the active attack: canaries, real, corrupted [canaries]"
    )
    group.add_argument("--seed", type=int, metavar="S", help="of split, canaries and training [0]")
    group.add_argument("--model", metavar="NAME", help="TransE, RotatE, DistMult or ComplEx [TransE]")
    for name, kind, usual in (("dim", int, "64"), ("negatives", int, "64"), ("batch_size", int, "512"),
                              ("local_epochs", int, "3"), ("lr", float, "0.003"), ("margin", float, "10")):  # fmt: skip
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="X", help=f"of training [{usual}]")


_STAGED: Final = (*_USUAL, *_USUAL_TRAINING, "dataset", "active", "min_holders", "batch_size", "margin")
_RECORDED: Final = ("truth", "client_data", "colluder")


def _run(options: argparse.Namespace) -> int:
    if options.targets < 1 or (options.every is not None and options.every < 1):
        raise UserError("--targets and --every must be at least 1")
    other = _STAGED if options.run is not None else _RECORDED
    wrong = [name for name in other if getattr(options, name) is not None]
    if wrong:
        where = "a recorded run" if options.run is not None else "an experiment without RUN"
        raise UserError(f"--{wrong[0].replace('_', '-')}: {where} has no use for it")
    if options.run is None and options.dataset is None:
        raise UserError("give RUN, or --dataset to stage a federation; see --help")
    for name in ("attack.json", "attack.html"):
        require_writable(options.out / name)
    require_json(options.json)
    report = _recorded(options) if options.run is not None else _staged(options)
    record = report.to_json()
    write_json(options.out / "attack.json", record)
    write_whole(options.out / "attack.html", membership_page(report).encode())
    deliver(record, options.json, lambda _: _show(report, options.out))
    return 0


def _staged(options: argparse.Namespace) -> MembershipReport:
    from secure_kg.attacks.membership.experiment import Plan, run_experiment
    from secure_kg.attacks.membership.telling import experiment_report

    given = {name: getattr(options, name) for name in _STAGED if getattr(options, name) is not None}
    chosen = {**_USUAL, **given}
    plan = Plan(
        rounds=chosen["rounds"],
        every=options.every or 5,
        canaries=chosen["canaries"],
        targets=options.targets,
        groups=chosen["groups"],
        active=tuple(given.get("active", ("canaries",))),
    )
    names = {name.lower(): name for name in MODELS}
    if "model" in given:
        given["model"] = names.get(given["model"].lower(), given["model"])
    fields = TrainingConfig.__dataclass_fields__
    training = TrainingConfig(**{**_USUAL_TRAINING, **{name: given[name] for name in given if name in fields}})
    config = RunConfig(
        **{name: chosen[name] for name in ("dataset", "by", "clients", "aggregation", "alignment", "seed")},
        strategy="fede",
        min_holders=given.get("min_holders"),
        rounds=plan.all_rounds,
        eval_every=plan.all_rounds,
        checkpoint_every=0,
        device="cpu",
        training=training,
    )
    graphs = load_graphs(config, chosen["clients"], chosen["clients"])
    with tempfile.TemporaryDirectory(prefix="secure-kg-attack-") as folder:
        found = run_experiment(config, graphs, plan, Path(folder) / "run", _reporter(options))
    about = (
        f"{config.training.model} on {Path(config.dataset).name} by {config.by}, {len(graphs)} clients, {plan.rounds} "
        f"rounds, {config.aggregation} sums: client 1, or the server with client 1 on its side, attacks client 2"
    )
    shown = {name: value for name, value in config.told().items() if name not in ("dataset", "training", "rounds")}
    shown |= {"dataset": Path(config.dataset).name, **config.told()["training"]}
    shown |= {name: getattr(plan, name) for name in ("rounds", "every", "canaries", "targets", "groups", "active")}
    return experiment_report(about, {name: _told(value) for name, value in shown.items()}, found)


def _recorded(options: argparse.Namespace) -> MembershipReport:
    from secure_kg.attacks.membership.recorded import attack_recorded, check_run
    from secure_kg.attacks.membership.telling import recorded_report

    run = open_run(options.run)
    check_run(run.config)
    colluder = options.colluder if options.colluder is not None else 1
    truth = _truth(run, options.truth if options.truth is not None else run.path / "clients", options.client_data)
    if colluder not in truth:
        raise UserError(f"--colluder {colluder}: the run has no model of that client")
    if len(truth) < 2:
        raise UserError(f"{options.run}: no client but the colluding one has left a model")
    outcomes = attack_recorded(run, truth, colluder, options.every, options.targets)
    config = run.config
    about = f"{run.path.name}: {config.model}, {config.aggregation} sums; the server with client {colluder} on its side"
    settings = {name: _told(getattr(config, name)) for name in ("strategy", "aggregation", "alignment", "clients")}
    return recorded_report(about, {**settings, "dim": _told(config.dim), "model": config.model}, outcomes)


def _truth(run: AuditedRun, clients: Path, data: str | None) -> dict[int, Truth]:
    """What every client holds that has left a model."""
    config = run.config if data is None else dataclasses.replace(run.config, client_data=data)
    there = [number for number in range(1, run.clients + 1) if (clients / str(number) / "model.safetensors").is_file()]
    graphs = {number: load_graph(config, run.clients, number) for number in there}
    return {number: Truth.read(run.path, number, graph, "entity", clients) for number, graph in graphs.items()}


def _show(report: MembershipReport, out: Path) -> None:
    for kind, title in TITLES.items():
        rows = [
            [one.name, str(one.victim), str(one.round), f"{one.auc:.3f}", f"{one.auc_low:.3f}-{one.auc_high:.3f}",
             f"{one.tpr_at_1_percent:.3f}", "" if one.f1 is None else f"{one.f1:.3f}", f"{one.best_f1:.3f}",
             f"{one.always_yes_f1:.3f}"]
            for one in report.last if one.targets == kind
        ]  # fmt: skip
        if rows:
            head = ("attack, view", "victim", "round", "AUC", "95 %", "TPR@1%", "F1", "best F1", "always yes")
            table(title, head, rows)
    if report.holders_told is not None:
        say(f"holders of a row that a client tells rightly from first means: {report.holders_told:.1%}")
    say(f"report: {out / 'attack.html'}, {out / 'attack.json'}")


def _reporter(options: argparse.Namespace) -> Callable[[str], None]:
    return (lambda line: None) if options.json == "-" else say


def _told(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


if __name__ == "__main__":
    sys.exit(main())
