"""DP-FLames, Table 2, measured again: F1 of membership attacks, the paper's beside ours.

Each cell is one `python -m launch.attack` on a staged federation, in a folder of its own; what is there with the same
settings is not run again. The paper reports the best F1 over rounds and thresholds on 500 members and 500 others, which
needs the truth twice. Beside it stands the F1 at a threshold that the attacker can choose, and the AUC.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from secure_kg.audit.records.membership import MembershipOutcome, MembershipReport
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_whole

NAME: Final = "dpflames-table2"
ATTACKS: Final = ("A_CIP", "A_CIA", "A_SI")
PAPER: Final[dict[str, dict[str, dict[str, float]]]] = {
    "fb15k-237": {
        "TransE": {"A_CIP": 0.724, "A_CIA": 0.8779, "A_SI": 0.878},
        "RotatE": {"A_CIP": 0.8211, "A_CIA": 0.8403, "A_SI": 0.7827},
        "DistMult": {"A_CIP": 0.7809, "A_CIA": 0.7346},
        "ComplEx": {"A_CIP": 0.7749, "A_CIA": 0.7949},
    },
    "nell-995": {
        "TransE": {"A_CIP": 0.8243, "A_CIA": 0.8817, "A_SI": 0.9023},
        "RotatE": {"A_CIP": 0.8728, "A_CIA": 0.8462, "A_SI": 0.748},
        "DistMult": {"A_CIP": 0.8686, "A_CIA": 0.7337},
        "ComplEx": {"A_CIP": 0.8429, "A_CIA": 0.7848},
    },
}
"""F1 as printed, by data set, model and attack."""
SETTINGS: Final[dict[str, tuple[str, str | None]]] = {
    "clients": ("3", None),
    "rounds": ("20", None),
    "local_epochs": ("3", None),
    "dim": ("64", "128"),
    "negatives": ("64", "256"),
    "batch_size": ("512", "64"),
    "lr": ("0.003", "0.001"),
    "canaries": ("500", "500"),
    "aggregation": ("plain", "plain"),
    "seed": ("0", None),
}
"""Ours unless given, and the paper's; None: it gives none."""
NOTES: Final = (
    "Members are canaries, planted by a coin, among triples that are like them in all else. The paper's 'randomly "
    "generated' triples may be these, or nonsense beside real members, which whoever predicts links tells apart.",
    "Best F1: over rounds and thresholds by the truth, as in the paper. F1: after the last round, at a threshold that "
    "a tenth of known non-members passes. Always yes has about 0.667.",
    "The paper gives neither the number of clients, nor their overlap, nor the local epochs; its mean over the table "
    "is 81.6 %, where its abstract says 83.1 %.",
    "As printed, A_CIP's ratio stands the wrong way round for distances, and clusters of A_SI tell nothing of random "
    "pairs: their best F1 is that of always yes.",
)
_EXAMPLE: Final = """\
examples:
  python -m benchmarks.reproduce dpflames-table2 --data-root DIR --models TransE --json table2.json
  python -m benchmarks.reproduce dpflames-table2 --data-root DIR --models RotatE --rounds 10 --dim 32"""


def main(argv: Sequence[str]) -> int:
    """0: done. 2: one line on standard error says what to mend, or how a run has failed."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=f"python -m benchmarks.reproduce {NAME}",
        description=__doc__,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--data-root", type=Path, required=True, metavar="DIR", help="holds fb15k-237/ or nell-995/")
    parser.add_argument("--dataset", choices=list(PAPER), default="fb15k-237", help="[fb15k-237]")
    parser.add_argument("--models", nargs="+", metavar="MODEL", default=["TransE"], help="[TransE]")
    for name, (usual, paper) in SETTINGS.items():
        told = "" if paper is None else f"; paper {paper}"
        parser.add_argument(f"--{name.replace('_', '-')}", default=usual, metavar="X", help=f"[{usual}{told}]")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/reproduction"), metavar="DIR", help="where results lie, and are found"
    )
    parser.add_argument("--json", metavar="FILE", help="write the table to FILE; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write the table to FILE as Markdown")
    return parser


def _run(options: argparse.Namespace) -> int:
    known = {name.lower(): name for name in PAPER[options.dataset]}
    for model in options.models:
        if model.lower() not in known:
            raise UserError(f"--models {model}: this table has {', '.join(known.values())}")
    data: Path = options.data_root / options.dataset
    if not data.exists():
        raise UserError(f"--data-root {options.data_root}: no {options.dataset} there")
    require_json(options.json)
    if options.markdown is not None:
        require_writable(Path(options.markdown))
    settings = {name: str(getattr(options, name)) for name in SETTINGS}
    models = dict.fromkeys(known[model.lower()] for model in options.models)
    reports = {model: _cell(data, model, settings, options.runs, options.json == "-") for model in models}
    report = build(options.dataset, settings, reports)
    deliver(report, options.json, _show)
    if options.markdown is not None:
        write_whole(Path(options.markdown), markdown(report).encode())
    return 0


def _cell(data: Path, model: str, settings: Mapping[str, str], runs: Path, quiet: bool) -> MembershipReport:
    """The report of one model; `UserError` with its last words if its run failed."""
    words = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)]
    name = "-".join(("membership", data.name, model.lower(), *(settings[one] for one in ("aggregation", "rounds")),
                     f"dim{settings['dim']}", f"seed{settings['seed']}"))  # fmt: skip
    written = runs / name / "attack.json"
    if (there := _finished(written, model, settings)) is not None:
        return there
    if not quiet:
        say(f"{data.name}, {model}: starts")
    command = [sys.executable, "-m", "launch.attack", "--dataset", str(data), "--model", model, *words]
    ended = subprocess.run([*command, "--out", str(runs / name)], capture_output=True, text=True, check=False)
    if ended.returncode or (found := _finished(written, model, settings)) is None:
        lines = ended.stderr.strip().splitlines()
        raise UserError(f"{model}: {(lines or ['ended without a result'])[-1].removeprefix('error: ')}")
    return found


def _finished(path: Path, model: str, settings: Mapping[str, str]) -> MembershipReport | None:
    try:
        report = MembershipReport.from_json(json.loads(path.read_text(encoding="utf-8")), path)
    except (OSError, ValueError, UserError):
        return None
    same = all(_same(report.settings.get(name), value) for name, value in {**settings, "model": model}.items())
    return report if same else None


def _same(here: str | None, there: str) -> bool:
    try:
        return here is not None and (here == there or float(here) == float(there))
    except ValueError:
        return False


def build(dataset: str, settings: Mapping[str, str], reports: Mapping[str, MembershipReport]) -> dict[str, Any]:
    """The table for machines: one line for each model and attack, the paper's figure and ours."""
    lines = [
        line
        for model, report in reports.items()
        for attack in ATTACKS
        for line in _lines(PAPER[dataset][model].get(attack), model, attack, report)
    ]
    deviations = [
        {"setting": name, "paper": paper, "here": settings[name]}
        for name, (_, paper) in SETTINGS.items()
        if paper is not None and paper != settings[name]
    ]
    return {"table": NAME, "dataset": dataset, "settings": dict(settings), "deviations": deviations, "lines": lines,
            "notes": list(NOTES)}  # fmt: skip


def _lines(paper: float | None, model: str, attack: str, report: MembershipReport) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], list[MembershipOutcome]] = {}
    for one in report.outcomes:
        if one.attack == attack and one.targets == "canaries":
            found.setdefault((one.variant, one.view), []).append(one)
    return [
        {
            "model": model,
            "attack": attack,
            "variant": variant,
            "view": view,
            "paper_f1": paper if view != "means" or attack != "A_SI" else None,
            "best_f1": max(one.best_f1 for one in outcomes),
            "f1": outcomes[-1].f1,
            "always_yes_f1": outcomes[-1].always_yes_f1,
            "auc": outcomes[-1].auc,
            "auc_low": outcomes[-1].auc_low,
            "auc_high": outcomes[-1].auc_high,
            "round": outcomes[-1].round,
        }
        for (variant, view), outcomes in found.items()
    ]


_HEAD: Final = ("model", "attack", "view", "paper F1", "best F1", "F1", "always yes", "AUC", "95 %")


def _cells(line: Mapping[str, Any]) -> list[str]:
    def told(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    return [
        line["model"],
        f"{line['attack']} {line['variant']}",
        line["view"],
        *(told(line[name]) for name in ("paper_f1", "best_f1", "f1", "always_yes_f1", "auc")),
        f"{line['auc_low']:.3f}-{line['auc_high']:.3f}",
    ]


def _show(report: dict[str, Any]) -> None:
    table(f"DP-FLames, Table 2: {report['dataset']}", _HEAD, [_cells(line) for line in report["lines"]])
    for note in report["notes"]:
        say(note)


def markdown(report: Mapping[str, Any]) -> str:
    """The table for a document."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    lines += ["| " + " | ".join(_cells(line)) + " |" for line in report["lines"]]
    return "\n".join([*lines, "", *(f"- {note}" for note in report["notes"])]) + "\n"
