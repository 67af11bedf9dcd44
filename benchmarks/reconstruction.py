"""What an attacker reconstructs (FedR, Tables 1 and 4): `python -m benchmarks.reconstruction --help`.

FedE and FedR are trained on a graph that is divided by triples, with the server's transcript; `launch.audit` then
attacks each other client with the help of client 1. In clear, as in the papers, and under secure sums. The private
union stands in all of them: a server that is told the names needs no attack for those.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.reproduction.cells import Cell, Job, Request, job_for
from benchmarks.reproduction.jobs import Outcome, run_all, spent
from benchmarks.reproduction.paper_figures import FEDR_TABLE_1, FEDR_TABLE_4
from benchmarks.reproduction.provenance import commit
from benchmarks.reproduction.rendering import markdown_table
from benchmarks.reproduction.settings import Settings
from benchmarks.reproduction.table import TITLES
from benchmarks.reproduction.tables import TABLES
from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from protocols.registry import AGGREGATIONS
from secure_kg.audit.records.parts import AttackResult
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import seconds_text
from secure_kg.runs.run_folder import read_json, write_whole

_TABLE: Final = TABLES["fedr-table2"]
_STRATEGIES: Final = ("fede", "fedr")
_LEAKS: Final = ("30", "50", "100")
_HIGH: Final = 3
_EPILOG: Final = """\
example:
  python -m benchmarks.reconstruction --data-root DIR --dataset fb15k-237 --markdown tables-1-and-4.md

DIR is that of `python -m benchmarks.reproduce --help`. What is finished is not run again.
Exit code 0: done. 1: a run or an audit failed, or time is up. 2: a mistake, told in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.reconstruction",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=112),
        allow_abbrev=False,
    )
    parser.add_argument("--data-root", required=True, metavar="DIR", help="where the data sets lie")
    known = [name for name, dataset in _TABLE.datasets.items() if not dataset.published]
    parser.add_argument(
        "--dataset", nargs="+", choices=known, default=known, metavar="NAME", help=f"[{' '.join(known)}]"
    )
    parser.add_argument(
        "--strategies", nargs="+", choices=_STRATEGIES, default=list(_STRATEGIES), metavar="NAME", help="[fede fedr]"
    )
    sums = ["plain", "secagg"]
    parser.add_argument(
        "--aggregation", nargs="+", choices=list(AGGREGATIONS), default=sums, metavar="NAME", help="[plain secagg]"
    )
    parser.add_argument("--clients", type=int, default=3, metavar="C", help="[3]")
    parser.add_argument("--model", choices=_TABLE.models, default="TransE", metavar="MODEL", help="[TransE]")
    parser.add_argument("--dim", type=int, default=Settings().dim, metavar="D", help="[128]")
    parser.add_argument("--rounds", type=int, default=12, metavar="R", help="rounds before the attack [12]")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="[0]")
    parser.add_argument("--runs", default="runs/reconstruction", metavar="DIR", help="[runs/reconstruction]")
    parser.add_argument("--hours", type=float, metavar="H", help="interrupt what is under way after so many [no limit]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables to FILE")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.clients < 2 or options.rounds < 1 or options.seed < 0:
        raise UserError("--clients must be at least 2, --rounds at least 1, and --seed not negative")
    require_json(options.json)
    if options.markdown:
        require_writable(Path(options.markdown))
    tell = (lambda _: None) if options.json == "-" else say
    until = None if options.hours is None else time.monotonic() + 3600 * options.hours
    lines: list[dict[str, Any]] = []
    sound = True
    for aggregation in options.aggregation:
        jobs = [*_jobs(options, aggregation)]
        outcomes = run_all(
            jobs,
            at_once=1,
            until=until,
            on_start=lambda job, again: tell(f"{job.cell}: {'goes on' if again else 'starts'}"),
            on_end=lambda job, outcome: tell(_ended(job, outcome)),
        )
        for job in jobs:
            if outcomes[job.cell].state == "finished":
                lines += _lines(job, aggregation)
            else:
                sound = False
    report = {"commit": commit(), "rounds": options.rounds, "dim": options.dim, "model": options.model, "lines": lines}
    deliver(report, options.json, _show)
    if options.markdown:
        write_whole(Path(options.markdown), ("\n".join(markdown_table(*_cells(lines))) + "\n").encode())
    return 0 if sound else 1


def _jobs(options: argparse.Namespace, aggregation: str) -> Iterator[Job]:
    settings = Settings(dim=options.dim, rounds=options.rounds, eval_every=options.rounds)
    settings.check()
    request = Request(
        table=_TABLE,
        datasets=tuple(dict.fromkeys(options.dataset)),
        clients=(options.clients,),
        models=(options.model,),
        strategies=tuple(dict.fromkeys(options.strategies)),
        seeds=(options.seed,),
        settings=settings,
        tuned={},
        aggregation=aggregation,
        data_root=Path(os.path.abspath(options.data_root)),
        runs=Path(os.path.abspath(options.runs)),
    )
    for cell in request.cells():
        if not (path := request.data_root / request.dataset(cell).where(cell.clients)).exists():
            raise UserError(f"--data-root {options.data_root}: no {path.relative_to(request.data_root)} there")
        job = job_for(request, cell)
        yield dataclasses.replace(job, start=(*job.start, "--transcript"))


def _ended(job: Job, outcome: Outcome) -> str:
    return f"{job.cell}: {outcome.state} after {seconds_text(outcome.seconds_now)}" + (
        f": {outcome.error}" if outcome.error else ""
    )


def _lines(job: Job, aggregation: str) -> Iterator[dict[str, Any]]:
    """A line for each target and leakage ratio of an audited run."""
    found = {(attack.id, attack.against): attack for attack in _attacks(job)}
    for target in range(2, job.cell.clients + 1):
        for leak in _LEAKS:
            attack = found.get((f"reconstruct-{job.cell.strategy}-{leak}", f"client {target}"))
            line: dict[str, Any] = {
                "dataset": job.cell.dataset,
                "strategy": job.cell.strategy,
                "aggregation": aggregation,
            }
            line |= {"target": target, "leak": int(leak), "seconds": spent(job).seconds}
            in_clear = not AGGREGATIONS[aggregation].hides_contributions
            line |= {"paper": _paper(job.cell, target, leak) if in_clear else None}
            if attack is None:  # where the server sees no row of the target there is nothing to attack
                yield line | {"scores": None, "chance": None, "succeeded": False}
            else:
                yield line | {"scores": attack.scores, "chance": attack.chance, "succeeded": attack.succeeded}


def _attacks(job: Job) -> list[AttackResult]:
    """From the audit's record, which is made if it is not there yet."""
    audited = job.folder.with_name(job.folder.name + ".audit")
    record = audited / "audit.json"
    if not record.exists():
        command = [sys.executable, "-m", "launch.audit", str(job.folder), "--truth", str(job.folder / "clients")]
        done = subprocess.run([*command, "--out", str(audited)], capture_output=True, text=True, check=False)
        if done.returncode not in (0, _HIGH):
            raise UserError(f"{job.cell}: the audit failed: {done.stderr.strip().splitlines()[-1:]}")
    return [AttackResult.from_json(one, record) for one in read_json(record).get("attacks", [])]


def _paper(cell: Cell, target: int, leak: str) -> list[float] | None:
    """ERR and TRR. Of FedR the paper has those for the whole leak alone."""
    if cell.clients != 3 or cell.model != "TransE":
        return None
    if cell.strategy == "fede":
        return list(FEDR_TABLE_1[f"C{target}"][_LEAKS.index(leak)]) if cell.dataset == "fb15k-237" else None
    return list(FEDR_TABLE_4[cell.dataset][f"C{target}"]) if leak == _LEAKS[-1] else None


def _cells(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    columns = ["data", "strategy", "sums", "target", "LR", "ERR, TRR paper", "ERR, TRR here", "by chance", "succeeded"]
    rows = []
    for line in lines:
        row = [line["dataset"], TITLES[line["strategy"]], line["aggregation"], f"client {line['target']}"]
        row += [f"{line['leak']} %", _pair(line["paper"])]
        scores, chance = line["scores"], line["chance"]
        row += ["nothing to attack" if scores is None else _pair([scores["ERR"], scores["TRR"]])]
        row += ["–" if chance is None else _pair([chance["ERR"], chance["TRR"]])]
        rows.append([*row, "yes" if line["succeeded"] else "no"])
    return columns, rows


def _pair(values: Sequence[float] | None) -> str:
    return "–" if values is None else ", ".join(f"{value:.4f}" for value in values)


def _show(report: dict[str, Any]) -> None:
    table("reconstruction (FedR, Tables 1 and 4)", *_cells(report["lines"]))


if __name__ == "__main__":
    sys.exit(main())
