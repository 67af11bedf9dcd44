"""The command line of a training job, derived from the typed settings: every field is an option."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from launch.command_line import OneLineParser, is_console_script
from launch.commands import script_names
from launch.hosts.interface import Host
from launch.hosts.job import DEFAULT_RANKS, Plan
from launch.hosts.registry import DEFAULT_HOST, HOSTS, chosen_host
from launch.network_options import NETWORK_OPTIONS, network_fields, usual_settings
from launch.network_options import TITLE as NETWORK_TITLE
from launch.privacy_options import PRIVACY_OPTIONS
from launch.privacy_options import TITLE as PRIVACY_TITLE
from launch.query_options import QUERY_OPTIONS, TITLE
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from secure_kg.data.partition import RULES
from secure_kg.federation.plan.by_name import (
    PRIVACY_FIELDS,
    check_options,
    check_privacy,
    config_of,
    model_name,
    resolved,
)
from secure_kg.federation.plan.presets import PRESETS, QUERY_PRESETS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Strategy
from secure_kg.federation.plan.typed_fields import flag, scalar_type
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.kinds import NETWORKS
from secure_kg.models.queries.shapes import ENCODERS
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.runs.run_folder import read_config

_NO_DEFAULTS: Final[Mapping[str, Any]] = {}

GROUPS: Final[dict[str, dict[str, str]]] = {
    "data": {
        "dataset": "umls, kinships or nations (included); any PyKEEN name (downloaded); one file of triples (.tsv, "
        ".csv, .nt, .ttl, .nq, .trig, .rdf, .jsonld, .parquet ...; docs/data.md), or a folder with train, valid and "
        "test of them; a federated .npz",
        "by": "how triples are divided among clients: triples (FedR), relations (FedE, FedCQA), entities (DP-FLames); "
        "graph: each named graph is a client; whole: not divided, the data set's own parts as one client (python -m "
        "launch.entire)",
        "client_data": "folder with the client's own train, valid and test files, or with one file of triples, which "
        "is divided 80/10/10, or that file; or with one such folder client-K for each (python -m launch.partition "
        "writes them); each client reads only its own",
        "literals": "triples whose tail is a literal: dropped and counted, or kept with the literal as an entity",
        "columns": "head,relation,tail of a table: names of its columns, or their numbers if it has no header",
        "allow_leaky_split": "train even if held-out triples were trained on or triples are repeated; the summary "
        "begins with their number, for such figures are too good",
    },
    "federation": {
        "strategy": "what clients share",  # choices and what they mean: `_explained`
        "aggregation": "how contributions are added up",
        "alignment": "how clients find out which rows are the same",
        "reveal_names": "tell the server names once they are aligned",
        "union_bound": "how many names the first attempt of the private set union has room for [relations 1024, "
        "entities 16384]; if it cannot be read, there are two more, for 4 and 16 times as many, and no others",
        "min_holders": "a row that fewer clients hold among those drawn in a round stays with them [two more than "
        "--max-corrupt of all clients are: 3 of 5 clients, 4 of 10]; 1: no row does",
        "rounds": "at most this many rounds; in the first one clients that share rows only agree on first rows",
        "client_fraction": "share of the clients that is drawn for each round",
        "eval_every": "rank the validation parts every so many rounds",
        "patience": "stop after so many evaluations without a better validation MRR",
        "ring_bits": "width of the masked sum's ring, 16 to 64: 32 costs as many bytes as clear floats, 16 half, "
        "64 rounds finer",
        "clip": "shared values are clipped to ± this; clipped values are counted in the summary; for rings of up to 24 "
        "bits, unless given, to 16 times the range of first rows",
        "min_participants": "a client refuses to take part in a sum of fewer clients",
        "adversary": "semi-honest: the server follows the protocol; active: it may not, so clients sign keys and "
        "survivors with identities they know of each other (--keys)",
        "max_corrupt": "share of all clients that may be on the server's side; sets the threshold of the sums",
        "max_dropout": "share of the clients that may drop out in one sum [0.4, active 0.25]; more end it without "
        "a result",
        "keys": "folder with the client's own private key and the key directory (python -m launch.keygen makes both)",
    },
    "local training": {
        "model": f"embedding model, or a graph network with defaults of its own: {usual_settings()}",
        "dim": "embedding dimension (complex dimension for RotatE and ComplEx)",
        "negatives": "negative entities for each triple",
        "share_negatives": "so many triples of a batch share their negatives; fewer: more different ones in a step, "
        "and less speed below some 100",
        "margin": "margin γ of the distance models; also sets the initial range",
        "temperature": "temperature α of self-adversarial weights",
        "lr": "learning rate of Adam",
        "lr_decay": "factor of the learning rate from one round to the next",
        "batch_size": "triples per step",
        "local_epochs": "passes over the client's triples per round",
        "corrupt": "negatives replace tails only (as in the papers), or heads and tails in turn",
        "norm": "norm of TransE and TransM",
        "eval_megabytes": "memory for scores when ranking; distance models on the CPU need none",
    },
    NETWORK_TITLE: NETWORK_OPTIONS,
    PRIVACY_TITLE: PRIVACY_OPTIONS,
    "run": {
        "seed": "seed of split, sampling and training; the same seed gives the same result",
        "checkpoint_every": "write a checkpoint every so many rounds; 0: never",
        "transcript": "record every message the server receives and sends in the run folder",
        "device": "auto: the rank's share of the GPUs, else the CPU with one thread",
        "deadline": "seconds after which a client counts as a dropout in any case (starting up is allowed 600)",
        "grace": "a client counts as a dropout earlier if it takes 5 times as long as it usually does or as the others "
        "do (30 times in a first answer), but never before so many seconds",
    },
}
_TRAINING: Final = "local training"
QUERY_GROUPS: Final = {
    TITLE if title == _TRAINING else title: QUERY_OPTIONS if title == _TRAINING else names
    for title, names in GROUPS.items()
    if title not in (NETWORK_TITLE, PRIVACY_TITLE)
}
"""Of launchers whose strategies train on queries."""


def parse(
    argv: Sequence[str], prog: str, description: str, epilog: str, defaults: Mapping[str, Any] = _NO_DEFAULTS
) -> Plan:
    """Options to a plan. `UserError` says in one line what is wrong; `--help` raises `SystemExit(0)`.

    `defaults`: the launcher's own, over those of `RunConfig`; presets and options win over them.
    """
    usual = str(defaults.get("strategy", RunConfig().strategy))
    host, of_queries = chosen_host(argv), STRATEGIES[usual].learner.of_queries
    parser = make_parser(prog, description, epilog, defaults, host)
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(f"unrecognized arguments: {unknown[0]}")
    given = vars(options)
    ranks, out, resume = given.pop("ranks", None), given.pop("out", None), given.pop("resume", None)
    preset = given.pop("preset", "auto")
    given.pop("host", None)  # chosen already
    of_host = {name: given.pop(name) for name in host.options if name in given}
    json = given.pop("json", None)
    if "model" in given:
        given["model"] = model_name(given["model"])
    if resume is None:
        check_privacy(given if preset == "auto" else {**given, "preset": preset})
    else:
        if out is not None:
            raise UserError("--resume continues in its own folder: leave out --out")
        _check_launcher(read_config(Path(resume)).strategy, usual)
        resumed = _resumed(Path(resume), given)
        return Plan(resumed, Path(resume), True, ranks, of_host, json)
    _check_launcher(given.get("strategy", usual), usual)
    config = resolved(given, defaults, of_queries=of_queries, preset=preset)
    return Plan(config, Path(out) if out else None, False, ranks, of_host, json)


def _check_launcher(strategy: str, usual: str) -> None:
    """Pooled training is one process, every other strategy a job of several, and queries have options of their own."""
    if STRATEGIES[strategy].learner.of_queries != STRATEGIES[usual].learner.of_queries:
        own = "launch.fedcqa" if STRATEGIES[strategy].learner.of_queries else "launch.fedr_secagg"
        raise UserError(f"--strategy {strategy} is for {command(own)}")
    if STRATEGIES[strategy].pools and not STRATEGIES[usual].pools:
        own = "launch.fedcqa" if STRATEGIES[strategy].learner.of_queries else f"launch.{strategy}"
        raise UserError(f"--strategy {strategy} pools all triples in one process: {command(own)}")
    if STRATEGIES[usual].pools and not STRATEGIES[strategy].pools:
        own = f"launch.{strategy}"
        launcher = command(own) if own in script_names() else f"{command('launch.fedr_secagg')} --strategy {strategy}"
        raise UserError(f"--strategy {strategy} is a job of several processes: {launcher}")


def make_parser(
    prog: str, description: str, epilog: str, defaults: Mapping[str, Any], host: Host
) -> argparse.ArgumentParser:
    """The options of a training job, for `parse`."""
    usual = STRATEGIES[str(defaults.get("strategy", RunConfig().strategy))]
    pools, of_queries = usual.pools, usual.learner.of_queries
    parser = OneLineParser(
        prog=prog,
        usage=f"{prog} [options]" if pools or is_console_script(prog) else f"mpirun -n N {prog} [options]",
        description=description,
        epilog=epilog,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=112),
        argument_default=argparse.SUPPRESS,  # what was not said must be known as not said: presets fill it in
        allow_abbrev=False,
    )
    owners = RunConfig, (QueryConfig if of_queries else TrainingConfig), PrivacyConfig
    fields = {entry.name: entry for owner in owners for entry in dataclasses.fields(owner)}
    fields |= {} if of_queries else network_fields()
    for title, names in (QUERY_GROUPS if of_queries else GROUPS).items():
        if pools and title == PRIVACY_TITLE:
            continue
        group = parser.add_argument_group(title)
        for name, text in names.items():
            _add_option(group, fields[name], defaults, _explained(name, text, of_queries))
        if title in (_TRAINING, TITLE):
            _add_preset(group, of_queries)
        if title == "run":
            _add_run_options(group, pools)
            if not pools:
                _add_host_options(group, host)
    return parser


def _add_preset(group: argparse._ArgumentGroup, of_queries: bool) -> None:
    if of_queries:
        text = (
            "what the options default to: usual is shown here; fedcqa is what its authors' code takes, and takes days "
            f"({_preset_text(QUERY_PRESETS['fedcqa'])}); small suits graphs of a few hundred entities "
            f"({_preset_text(QUERY_PRESETS['small'])}); auto is small for the included data sets, else usual [auto]"
        )
    else:
        text = (
            "what the options default to: paper is FedR's appendix B, shown here; fede is FedE's section 3.2 "
            f"({_preset_text(PRESETS['fede'])}); small suits graphs of a few hundred entities "
            f"({_preset_text(PRESETS['small'])}); private is for --dp ({_preset_text(PRESETS['private'])}); auto is "
            "private under --dp, else small for the included data sets, else paper [auto]"
        )
    group.add_argument("--preset", choices=["auto", *(QUERY_PRESETS if of_queries else PRESETS)], help=text)


def _add_run_options(group: argparse._ArgumentGroup, pools: bool) -> None:
    group.add_argument("--out", metavar="DIR", help="new run folder [runs/<time>-<strategy>-...]")
    group.add_argument("--resume", metavar="DIR", help="continue the run in DIR from its last checkpoint")
    group.add_argument("--json", metavar="FILE", help="write summary.json to FILE as well; - for standard output alone")
    group.add_argument(
        "-n",
        "--ranks",
        type=int,
        metavar="N",
        help=f"pool the data of N-1 clients [{DEFAULT_RANKS}; what a published split or --client-data has]"
        if pools
        else f"without mpirun: start 1 server and N-1 clients [{DEFAULT_RANKS}]",
    )


def _add_host_options(group: argparse._ArgumentGroup, host: Host) -> None:
    known = "; ".join(f"{name}: {entry.text}" for name, entry in HOSTS.items())
    text = f"what carries the parties of the job; {known} [{DEFAULT_HOST}]"
    group.add_argument("--host", choices=tuple(HOSTS), metavar="|".join(HOSTS), help=text)
    for name, text in host.options.items():
        group.add_argument(flag(name), metavar="TEXT", help=text)


def _add_option(
    group: argparse._ArgumentGroup, entry: "dataclasses.Field[Any]", defaults: Mapping[str, Any], text: str
) -> None:
    name, default = entry.name, defaults.get(entry.name, entry.default)
    text = text.replace("%", "%%")
    if entry.type is bool:
        group.add_argument(flag(name), action="store_true", help=text)
        return
    kind = scalar_type(entry.type)
    convert = kind if isinstance(kind, type) else kind[0]
    strategies = _alike(STRATEGIES[str(default)].learner.of_queries) if name == "strategy" else {}
    named = {"by": RULES, "strategy": strategies, "aggregation": AGGREGATIONS, "alignment": ALIGNMENTS}
    named["encoder"] = ENCODERS
    choices = tuple(named.get(name, ())) or tuple(
        option for option in get_args(entry.type) if not isinstance(option, type)
    )
    named_in_help = (*MODELS, *NETWORKS) if name == "model" else choices
    metavar = "|".join(map(str, named_in_help)).lower() or convert.__name__.upper()
    shown = str(default).lower() if name == "model" else default
    said = default is not None and default != "" and name != "dp"  # which is off unless it is given
    suffix = "" if not said else f" [{shown:g}]" if isinstance(default, float) else f" [{shown}]"
    group.add_argument(flag(name), type=convert, choices=choices or None, metavar=metavar, help=text + suffix)


def _alike(of_queries: bool) -> dict[str, Strategy]:
    """The strategies that a launcher can choose between."""
    return {name: one for name, one in STRATEGIES.items() if one.learner.of_queries == of_queries}


def _explained(name: str, text: str, of_queries: bool) -> str:
    """The help of an option; of a choice among protocols in the words of their disclosures."""
    match name:
        case "strategy":
            told = [f"{one.name}: {one.choice}" for one in _alike(of_queries).values()]
        case "aggregation":
            told = [f"{one.name}: {one.disclosure.choice}" for one in AGGREGATIONS.values()]
        case "alignment":
            told = [f"{one.name}: {one.disclosure.choice}" for one in ALIGNMENTS.values()]
        case "reveal_names":
            told = [f"{one.name}: {one.revealing.choice}" for one in ALIGNMENTS.values() if one.revealing is not None]
        case _:
            return text
    return f"{text}: {'; '.join(told)}"


def _preset_text(preset: Mapping[str, Any]) -> str:
    return " ".join(flag(key) if value is True else f"{flag(key)} {value}" for key, value in preset.items())


def _resumed(folder: Path, given: dict[str, Any]) -> RunConfig:
    """The settings of the run in `folder`. Only those may change that leave every finished round as it was."""
    saved = read_config(folder)
    flat = dataclasses.asdict(saved)
    training, queries, network, privacy = (flat.pop(name) for name in ("training", "queries", "network", "privacy"))
    flat |= (network or training) if queries is None else queries
    flat |= privacy or {}
    if queries is None:
        check_options({"model": saved.model, **given})
    if privacy is None and (asked := sorted(PRIVACY_FIELDS & given.keys())):
        raise UserError(f"{flag(asked[0])}: the run in {folder} was started without --dp")
    local = {"checkpoint_every", "transcript", "device", "deadline", "grace", "client_data", "columns", "keys"}
    # Noise was reckoned for the rounds that a private run began with.
    changeable = {"patience", *local} if privacy is not None else {"rounds", "patience", *local}
    for name, value in given.items():
        started_with = saved.least_holders if name == "min_holders" else flat[name]
        if name not in changeable and started_with != value:
            same = "leave it out, or start a new run with another --out"
            raise UserError(f"{flag(name)} {value}: the run in {folder} was started with {started_with}; {same}")
    return config_of({**flat, **given}, saved.queries is not None)
