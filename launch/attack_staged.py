"""The options of `launch.attack` for a staged federation, and what follows from them."""

import argparse
import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from launch.privacy_options import PRIVACY_OPTIONS
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from secure_kg.audit.records.membership import MembershipReport
from secure_kg.data.client_data import load_graphs
from secure_kg.data.partition import DIVIDING_RULES
from secure_kg.federation.plan.by_name import check_privacy
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.run_config import PrivacyConfig

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
_USUAL_PRIVATE: Final = {"rounds": 200, "groups": 1, "dim": 32}
"""Of a private federation, one step in a round."""
_PRIVACY: Final[dict[str, type]] = {
    "delta": float,
    "dp_clip": float,
    "dp_step": float,
    "dp_last_step": float,
    "dp_sampling": float,
    "dp_noise": str,
}


def add_staged(group: argparse._ArgumentGroup) -> None:
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
    private = group.add_argument
    private("--dp", choices=["sgd"], help="attack a federation with differential privacy (docs/privacy.md)")
    private("--epsilon", nargs="+", metavar="E", help="its budget; several, and the word none, for a sweep")
    for name, typed in _PRIVACY.items():
        private(f"--{name.replace('_', '-')}", type=typed, metavar="X", help=PRIVACY_OPTIONS[name])
    private("--max-dropout", type=float, metavar="X", help="share of clients that may drop out; 0: less noise")


STAGED: Final = (
    *_USUAL, *_USUAL_TRAINING, "dataset", "active", "min_holders", "batch_size", "margin", "dp", "epsilon", *_PRIVACY,
    "max_dropout",
)  # fmt: skip


def check_privacy_of(options: argparse.Namespace) -> None:
    """`UserError` for options of privacy that have no meaning beside the others."""
    names = ("dp", "epsilon", *_PRIVACY)
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    check_privacy(given)
    if "dp" in given and not any(_privacy(options, one) for one in budgets(options)):
        raise UserError("--epsilon none alone is a federation without --dp: leave both out")


def budgets(options: argparse.Namespace) -> list[float | None]:
    """The values of --epsilon, each once; None: no differential privacy."""
    found: list[float | None] = []
    for word in options.epsilon or ["none"]:
        try:
            found.append(None if word == "none" else float(word))
        except ValueError:
            raise UserError(f"--epsilon {word}: a number, or none") from None
    return list(dict.fromkeys(found))


def staged(
    options: argparse.Namespace, report: Callable[[str], None], epsilon: float | None = None
) -> MembershipReport:
    """Attack a federation. `epsilon`: of a sweep; by default the one that is given."""
    from secure_kg.attacks.membership.experiment import Plan, run_experiment
    from secure_kg.attacks.membership.telling import experiment_report

    if len(budgets(options)) == 1:
        (epsilon,) = budgets(options)
    given = {name: getattr(options, name) for name in STAGED if getattr(options, name) is not None}
    privacy = _privacy(options, epsilon)
    chosen = {**_USUAL, **({} if privacy is None else _USUAL_PRIVATE), **given}
    plan = Plan(
        rounds=int(str(chosen["rounds"] if privacy is not None or options.dp is None else _USUAL["rounds"])),
        every=options.every or (5 if privacy is None else max(1, chosen["rounds"] // 4)),
        canaries=chosen["canaries"],
        targets=options.targets,
        groups=chosen["groups"],
        active=tuple(given.get("active", ("canaries",))),
    )
    config = _config(chosen, given, plan.all_rounds, privacy)
    graphs = load_graphs(config, chosen["clients"], chosen["clients"])
    with tempfile.TemporaryDirectory(prefix="secure-kg-attack-") as folder:
        found = run_experiment(config, graphs, plan, Path(folder) / "run", report)
    how = "" if privacy is None else f", epsilon {privacy.epsilon:g}"
    about = (
        f"{config.training.model} on {Path(config.dataset).name} by {config.by}, {len(graphs)} clients, {plan.rounds} "
        f"rounds, {config.aggregation} sums{how}: client 1, or the server with client 1 on its side, attacks client 2"
    )
    apart = ("dataset", "training", "rounds", "privacy")
    shown = {name: value for name, value in config.told().items() if name not in apart}
    shown |= {"dataset": Path(config.dataset).name, **config.told()["training"]}
    shown |= {} if privacy is None else dataclasses.asdict(privacy)
    shown |= {name: getattr(plan, name) for name in ("rounds", "every", "canaries", "targets", "groups", "active")}
    return experiment_report(about, {name: told(value) for name, value in shown.items()}, found)


def _config(
    chosen: Mapping[str, Any], given: Mapping[str, Any], rounds: int, privacy: PrivacyConfig | None
) -> RunConfig:
    names = {name.lower(): name for name in MODELS}
    known = TrainingConfig.__dataclass_fields__
    fields = {**_USUAL_TRAINING, **{name: chosen[name] for name in chosen if name in known}}
    fields["model"] = names.get(str(fields["model"]).lower(), fields["model"])
    return RunConfig(
        **{name: chosen[name] for name in ("dataset", "by", "clients", "aggregation", "alignment", "seed")},
        strategy="fede",
        min_holders=given.get("min_holders"),
        max_dropout=given.get("max_dropout"),
        rounds=rounds,
        eval_every=rounds,
        checkpoint_every=0,
        ring_bits=32 if privacy is None else 64,  # room for any noise; bytes do not matter here
        device="cpu",
        training=TrainingConfig(**fields),
        privacy=privacy,
    )


def _privacy(options: argparse.Namespace, epsilon: float | None) -> PrivacyConfig | None:
    if options.dp is None or (epsilon is None and options.epsilon is not None):
        return None
    own = {name: getattr(options, name) for name in _PRIVACY if getattr(options, name) is not None}
    return PrivacyConfig(dp=options.dp, epsilon=epsilon, **own)


def told(value: object) -> str:
    """A setting in words."""
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
