"""Membership attacks: `python -m launch.attack --dataset D --out DIR`, or on a recorded run: `... RUN --out DIR`."""

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from launch.attack_staged import STAGED, add_staged, budgets, check_privacy_of, staged, told
from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from secure_kg.attacks.truth import Truth
from secure_kg.audit.records.membership import MembershipReport, MembershipSweep
from secure_kg.audit.view.read import AuditedRun, open_run
from secure_kg.data.client_data import load_graph
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.report.membership_page import TITLES, membership_page, sweep_page
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
  python -m launch.attack --dataset kinships --model distmult --dp sgd --epsilon 2 8 none --delta 1e-5 --out attacks/dp
  python -m launch.attack runs/plain --out attacks/plain           a run that was started with --transcript

DIR gets attack.html, for people, and attack.json; with several values of --epsilon also sweep.html and sweep.json, and
a folder for each. Exit code 0: done. 2: a mistake, told in one line."""

_MOST_TARGETS: Final = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
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
    add_staged(parser.add_argument_group("without RUN"))
    return parser


def _add_recorded(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--truth", type=Path, metavar="DIR", help="the clients' folders [RUN/clients]")
    group.add_argument("--client-data", metavar="DIR", help="the clients' triples, if not where the run had them")
    group.add_argument("--colluder", type=int, metavar="K", help="the client on the server's side [1]")


_RECORDED: Final = ("truth", "client_data", "colluder")


def _run(options: argparse.Namespace) -> int:
    if options.targets < 1 or (options.every is not None and options.every < 1):
        raise UserError("--targets and --every must be at least 1")
    other = STAGED if options.run is not None else _RECORDED
    wrong = [name for name in other if getattr(options, name) is not None]
    if wrong:
        where = "a recorded run" if options.run is not None else "an experiment without RUN"
        raise UserError(f"--{wrong[0].replace('_', '-')}: {where} has no use for it")
    if options.run is None and options.dataset is None:
        raise UserError("give RUN, or --dataset to stage a federation; see --help")
    check_privacy_of(options)
    for name in ("attack.json", "attack.html"):
        require_writable(options.out / name)
    require_json(options.json)
    if options.run is None and len(budgets(options)) > 1:
        return _sweep(options)
    report = _recorded(options) if options.run is not None else staged(options, _reporter(options))
    record = _written(report, options.out)
    deliver(record, options.json, lambda _: _show(report, options.out))
    return 0


def _written(report: MembershipReport, out: Path) -> dict[str, Any]:
    record = report.to_json()
    write_json(out / "attack.json", record)
    write_whole(out / "attack.html", membership_page(report).encode())
    return record


def _sweep(options: argparse.Namespace) -> int:
    """The same federation once for each budget, each in a folder of its own."""
    for name in ("sweep.json", "sweep.html"):
        require_writable(options.out / name)
    reports = []
    for epsilon in budgets(options):
        name = "none" if epsilon is None else f"{epsilon:g}"
        _reporter(options)(f"epsilon {name}")
        reports.append(staged(options, _reporter(options), epsilon))
        _written(reports[-1], options.out / f"epsilon-{name}")
    reports.sort(key=lambda report: math.inf if report.bound is None else report.bound.epsilon)
    sweep = MembershipSweep(about=reports[-1].about, reports=reports, notes=reports[0].notes)
    record = sweep.to_json()
    write_json(options.out / "sweep.json", record)
    write_whole(options.out / "sweep.html", sweep_page(sweep).encode())
    deliver(record, options.json, lambda _: _show_sweep(sweep, options.out))
    return 0


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
    settings = {name: told(getattr(config, name)) for name in ("strategy", "aggregation", "alignment", "clients")}
    return recorded_report(about, {**settings, "dim": told(config.dim), "model": config.model}, outcomes)


def _truth(run: AuditedRun, clients: Path, data: str | None) -> dict[int, Truth]:
    """What every client holds that has left a model."""
    config = run.config if data is None else dataclasses.replace(run.config, client_data=data)
    there = [number for number in range(1, run.clients + 1) if (clients / str(number) / "model.safetensors").is_file()]
    graphs = {number: load_graph(config, run.clients, number) for number in there}
    return {number: Truth.read(run.path, number, graph, "entity", clients) for number, graph in graphs.items()}


def _show_sweep(sweep: MembershipSweep, out: Path) -> None:
    rows = [
        ["none" if report.bound is None else f"{report.bound.epsilon:g}", one.name, f"{one.auc:.3f}",
         f"{one.auc_low:.3f}-{one.auc_high:.3f}", "" if (most := report.bound_of(one)) is None else f"{most:.3f}"]
        for report in sweep.reports for one in report.last
        if one.targets == "canaries" and one.variant != "as printed"
    ]  # fmt: skip
    table("Canaries by epsilon", ("epsilon", "attack, view", "AUC", "95 %", "bound"), rows)
    say(f"report: {out / 'sweep.html'}, {out / 'sweep.json'}")


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
    if report.bound is not None:
        bound = report.bound
        budget = f"epsilon {bound.epsilon:g}, delta {bound.delta:.2g}"
        say(f"{budget}: no attack on canaries has an AUC above {bound.auc:.3f}")
    if report.holders_told is not None:
        say(f"holders of a row that a client tells rightly from first means: {report.holders_told:.1%}")
    say(f"report: {out / 'attack.html'}, {out / 'attack.json'}")


def _reporter(options: argparse.Namespace) -> Callable[[str], None]:
    return (lambda line: None) if options.json == "-" else say


if __name__ == "__main__":
    sys.exit(main())
