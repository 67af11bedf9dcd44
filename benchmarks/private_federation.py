"""What privacy costs in link prediction in a federation: `python -m benchmarks.private_federation --help`.

Whole federations in one process, each with its own noise: the tail MRR of the clients' test triples, by epsilon and by
who adds the noise. Ranks leave out the triples of all clients, which only whoever runs this can do; a client of a real
federation leaves out its own, and its figures (last column) are lower for that. Sums are secure unless --aggregation
says otherwise; a plain sum with the same noise has the same result to the last bit.

Three rows are controls without a federation, on the same splits and with the same steps: no noise at all, central noise
(one holder of all triples adds the noise of one), and a table of counts relation -> tail under the noise of shares.

Settings that were chosen by results are outside epsilon.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.privacy.training_config import PrivateTrainingConfig, usual_step

SETTINGS: dict[str, dict[str, Any]] = {
    "shares, f = 1": {"max_dropout": 0.0},
    "shares, usual f": {},
    "full": {"dp_noise": "full"},
    "local": {"strategy": "local"},
    "fede": {"strategy": "fede"},
}
"""By name: what differs from shares of noise on all rows."""
CONTROLS: dict[str, tuple[str, int]] = {"no noise": ("no noise", 0), "central": ("shares", 0), "counts": ("counts", 1)}
"""By name: the arm of `benchmarks.private.arms`, and how many clients may be missing or corrupt."""

_OF_TRAINING = ("dim", "negatives", "steps", "last_step", "margin", "temperature")


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.private_federation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.private_federation --epsilon 16 4 --settings full 'shares, f = 1'",
        allow_abbrev=False,
    )
    usual, preset, add = PrivacyConfig(epsilon=1.0, delta=1e-5), PrivateTrainingConfig(), parser.add_argument
    add("--dataset", default="kinships", metavar="PATH", help=f"a folder, or one of {', '.join(BUNDLED)} [kinships]")
    add("--by", default="triples", help="how triples are divided among clients [triples]")
    add("--clients", type=int, default=5, metavar="N", help="[5]")
    add("--epsilon", type=float, nargs="+", default=[16.0, 4.0], metavar="E", help="[16 4]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    names = [*CONTROLS, *SETTINGS]
    add("--settings", nargs="+", default=names, choices=names, help=f"[{', '.join(names)}]")
    add("--seeds", type=int, default=3, metavar="N", help="trainings of each [3]")
    add("--first-seed", type=int, default=0, metavar="S", help="[0]")
    add("--model", default="distmult", choices=[name.lower() for name in MODELS], help="[distmult]")
    add("--dim", type=int, default=preset.dim, help=f"[{preset.dim}]")
    add("--negatives", type=int, default=preset.negatives, metavar="K", help=f"[{preset.negatives}]")
    add("--steps", type=int, default=preset.steps, metavar="T", help=f"[{preset.steps}]")
    add("--clip", type=float, default=usual.dp_clip, metavar="C", help=f"[{usual.dp_clip:g}]")
    add("--step", type=float, metavar="L", help="per unit of the sum [by the budget's noise]")
    last = usual.dp_last_step
    add("--last-step", type=float, default=last, metavar="F", help=f"fraction left in the last step [{last:g}]")
    add("--margin", type=float, default=preset.margin, help=f"of distances and initial rows [{preset.margin:g}]")
    add("--temperature", type=float, default=preset.temperature, help=f"[{preset.temperature:g}]")
    add("--aggregation", choices=("secagg", "plain"), default="secagg", help="how shared rows are summed [secagg]")
    add("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.first_seed < 0 or options.clients < 2:
        raise UserError("--seeds must be at least 1, --first-seed at least 0, --clients at least 2")
    require_json(options.json)
    asked = [(epsilon, name) for epsilon in options.epsilon for name in options.settings]
    once = [(epsilon, name) for epsilon, name in asked if name != "no noise" or epsilon == options.epsilon[0]]
    rows = [_measured(epsilon, name, options) for epsilon, name in once]
    told = {name: value for name, value in vars(options).items() if name not in ("json", "settings", "epsilon")}
    deliver(told | {"rows": rows}, options.json, _show)
    return 0


def _config(epsilon: float, name: str, seed: int, options: argparse.Namespace) -> RunConfig:
    changes = dict(SETTINGS[name])
    privacy = PrivacyConfig(
        epsilon=epsilon,
        delta=options.delta,
        dp_clip=options.clip,
        dp_step=options.step,
        dp_last_step=options.last_step,
        dp_noise=changes.pop("dp_noise", "shares"),
    )
    model = {one.lower(): one for one in MODELS}[options.model]
    changes = {"strategy": "all-rows", **changes}
    return RunConfig(
        **changes,
        dataset=options.dataset,
        by=options.by,
        clients=options.clients,
        aggregation=options.aggregation,
        alignment="plain",
        rounds=options.steps + (changes["strategy"] != "local"),
        checkpoint_every=0,
        seed=seed,
        training=TrainingConfig(
            model=model,
            dim=options.dim,
            negatives=options.negatives,
            margin=options.margin,
            temperature=options.temperature,
            norm=PrivateTrainingConfig().norm,
        ),
        privacy=privacy,
    )


def _measured(epsilon: float, name: str, options: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.private.federation import run

    pooled, own = [], []
    for seed in tracked(range(options.first_seed, options.first_seed + options.seeds), f"seeds of {name}"):
        if name in CONTROLS:
            pooled.append(_control(epsilon, name, seed, options))
            continue
        found = run(_config(epsilon, name, seed, options))
        pooled.append(found[0].metrics()["mrr"])
        own.append(found[1])
    spread = {"lowest": min(pooled), "highest": max(pooled), "by_seed": pooled}
    means = {"tail_mrr": statistics.mean(pooled), "own_filter": statistics.mean(own) if own else None}
    return {"epsilon": None if name == "no noise" else epsilon, "settings": name, **means, **spread}


def _control(epsilon: float, name: str, seed: int, options: argparse.Namespace) -> float:
    """Tail MRR of what has no federation, on the split of one."""
    import torch

    from benchmarks.private.arms import Arm, Sites, measured
    from secure_kg.data.partition import partition
    from secure_kg.data.sources import load_source
    from secure_kg.privacy.accounting.accountant import Budget, noise_for

    torch.set_num_threads(1)
    arm, spare = CONTROLS[name]
    sites = Sites(partition(load_source(options.dataset), options.clients, options.by, seed))
    given = {} if options.step is None else {"step": options.step}
    config = PrivateTrainingConfig(
        model={one.lower(): one for one in MODELS}[options.model],
        clip=options.clip,
        **{name: getattr(options, name) for name in _OF_TRAINING},
        **given,
    )
    if name == "central" and options.step is None:
        noise = noise_for(Budget(epsilon, options.delta), config.steps)
        config = replace(config, step=usual_step(noise, config.steps))
    return measured(sites, config, Arm(arm, Budget(epsilon, options.delta), spare), seed, part="test").metrics()["mrr"]


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            "none" if row["epsilon"] is None else f"{row['epsilon']:g}",
            row["settings"],
            f"{row['tail_mrr']:.3f}",
            f"{row['lowest']:.3f} to {row['highest']:.3f}",
            "" if row["own_filter"] is None else f"{row['own_filter']:.3f}",
        ]
        for row in report["rows"]
    ]
    title = f"{report['dataset']}, {report['model']}, {report['clients']} clients by {report['by']}: test, tail MRR"
    table(title, ("epsilon", "noise", "MRR", f"{report['seeds']} seeds", "own filter"), rows)
    say("f: how many clients may be corrupt or drop out. Settings chosen by results are outside epsilon.")


if __name__ == "__main__":
    sys.exit(main())
