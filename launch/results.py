"""Closing lines of a job: one table, then a few lines."""

from pathlib import Path
from typing import Any

from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.split_record import blemish_note, leak_warning
from secure_kg.runs.summary import clients_tested, comparable

_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


def show_results(summary: dict[str, Any], folder: Path) -> None:
    if warning := leak_warning(summary):  # before any figure
        say(warning)
    config = summary["config"]
    training = config["training"]
    title = (
        f"{STRATEGIES[config['strategy']].title} on {_data(config)}, {training['model']}, "
        f"{clients_tested(summary)} clients, {config['aggregation']}: test, tail side, filtered"
    )
    rows = [[f"client {client['client']}", *_row(client, client["test_triples"])] for client in summary["clients"]]
    if summary["mrr"] is not None:
        rows.append(["all", *_row(summary, summary["test_triples"])])
    table(title, ("", "test triples", "MRR", "Hits@1", "Hits@3", "Hits@10", "kB up", "kB down"), rows)
    if summary["mrr"] is not None:
        both = summary["both_sides"]
        say(
            f"rounds {summary['rounds']}, best {summary['best_round']} by validation MRR {summary['valid_mrr']:.4f}; "
            f"both sides: MRR {both['mrr']:.4f}, Hits@10 {both['hits@10']:.4f}"
        )
    else:
        say(f"rounds {summary['rounds']}, best {summary['best_round']}; the results are in the clients' own folders")
    phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in summary["seconds"].items())
    say(f"seconds per client: {phases}; with start-up {summary['seconds_total']:.1f} in all")
    if note := blemish_note(summary):
        say(note)
    _say_dropouts(summary)
    _say_privacy(summary)
    _compare(summary, folder)
    say(f"run folder: {folder}  (report: {folder / 'report.html'})")


def _say_dropouts(summary: dict[str, Any]) -> None:
    for dropout in summary["dropouts"]:
        when = f"in round {dropout['round']}" if dropout["round"] else "during set-up"
        end = f"came back in round {dropout['returned']}" if "returned" in dropout else "did not come back"
        say(f"dropout: client {dropout['client']} fell silent {when} ({dropout['step']}) and {end}")
    for given_up in summary["abandoned_sums"]:
        say(f"no sum of {given_up['purpose']} in round {given_up['round']}: {given_up['reason']}")


def _say_privacy(summary: dict[str, Any]) -> None:
    config = summary["config"]
    strategy = STRATEGIES[config["strategy"]]
    if strategy.pools and summary["number_of_clients"] > 1:  # one graph is nobody else's
        say(f"not private: one process read the triples of all {summary['number_of_clients']} clients")
    if strategy.shared is None:
        return
    disclosed = Disclosed.of_summary(config)
    active = config["adversary"] == "active"
    trust = "even if it breaks the protocol" if active else "if it follows the protocol"
    lost = (
        f"fixed-point error at most {summary['max_fixed_point_error']:.1e}, {summary['clipped_values']} values clipped"
    )
    say(disclosed.fill(disclosed.sums.disclosure.in_brief, trust=trust, lost=lost))
    _say_kept_local(summary, disclosed)
    say(disclosed.fill(disclosed.of_alignment[-1].in_brief, trust=trust, lost=lost))
    more = disclosed.sums.disclosure.changing_clients
    if more and (config["client_fraction"] < 1 or summary["dropouts"]):
        say(f"but {disclosed.fill(more)}")


def _say_kept_local(summary: dict[str, Any], disclosed: Disclosed) -> None:
    kept, least = summary["rows_kept_local"], disclosed.least_holders
    if least < 2:
        say("rows of single holders were added up too (--min-holders 1): the sum of one is that client's own row")
    elif kept is None:
        say(f"kept local: rows held by fewer than {least} clients")
    else:
        say(f"kept local: {kept} of {summary['shared_rows']} rows, held by fewer than {least} clients in every round")
    safe = summary.get("corrupt_clients", 0) + 2  # summaries of earlier versions do not say
    if disclosed.sums.hides_contributions and 2 <= least < safe:
        say(
            f"but a row of {least} holders may open to the server together with corrupt clients, of whom --max-corrupt "
            f"declares {safe - 2}: --min-holders {safe} hides it"
        )


def _compare(summary: dict[str, Any], folder: Path) -> None:
    """Runs beside this one on the same data, seed and model, e.g. under another strategy."""
    others = []
    for path in sorted(folder.resolve().parent.glob("*/summary.json")):
        if path.parent == folder.resolve():
            continue
        try:
            other = RunFolder(path.parent).summary()
        except UserError:  # somebody else's broken file is not this run's failure
            continue
        if other is not None and comparable(summary, other):
            others.append((path.parent.name, other))
    if not others and summary["number_of_clients"] == 1:
        return
    if not others:
        beside = "local" if summary["config"]["strategy"] != "local" else "fedr_secagg"
        say(f"to compare: python -m launch.{beside} with the same options and another --out beside this one")
        return
    rows = [_comparison(name, run) for name, run in [*others, ("this run", summary)]]
    columns = ("run", "strategy", "sums", "clients", "rounds", "MRR", "Hits@10", "kB up")
    table("the same data, seed and model", columns, rows)


def _comparison(name: str, run: dict[str, Any]) -> list[str | int]:
    config, sent = run["config"], round(run["bytes_up"] / 1000)
    scores = ("", "") if run["mrr"] is None else (f"{run['mrr']:.4f}", f"{run['hits@10']:.4f}")
    return [name, config["strategy"], config["aggregation"], clients_tested(run), run["rounds"], *scores, sent]


def _row(values: dict[str, Any], count: int) -> list[str | int]:
    scores = [f"{values[name]:.4f}" for name in _METRICS]
    return [count, *scores, round(values["bytes_up"] / 1000), round(values["bytes_down"] / 1000)]


def _data(config: dict[str, Any]) -> str:
    return "own folders" if config.get("client_data") else f"{Path(config['dataset']).name} by {config['by']}"
