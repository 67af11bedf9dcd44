"""Who learned what in a run, by its settings."""

from typing import Any

from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.report.html import Html, stacked_table


def adversary(config: dict[str, Any]) -> str:
    if STRATEGIES[config["strategy"]].pools:
        return "All triples in one place violate the privacy of every client; this run is there to be compared with."
    if config["aggregation"] == "plain":
        return "Plain sums protect nothing; they are there to be measured against."
    server = (
        "a server that may break the protocol (clients signed keys and survivors)"
        if config["adversary"] == "active"
        else "a server that follows the protocol but is curious"
    )
    alone = (
        " Secret sums and the private alignment hold against the server alone: one client on its side can open the "
        "sums, or test names it guesses, but no single client's values."
    )
    return f"Against {server}, together with up to {config['max_corrupt']:.0%} of all clients." + alone


def privacy(summary: dict[str, Any]) -> Html:
    config = summary["config"]
    if STRATEGIES[config["strategy"]].pools:
        everything = ["triples, rows and metrics of every client", "all of them"]
        return stacked_table(("", "whoever ran this learned"), [everything])
    shared = STRATEGIES[config["strategy"]].shared
    learned = {"plain": "every client's", "secagg": "their sums only", "secret": "nothing"}[config["aggregation"]]
    rows = []
    if shared is not None:
        least, kept = config["min_holders"], summary["rows_kept_local"]
        rows.append([f"values of {shared} rows", learned, "the mean rows"])
        if least > 1:
            rows.append([_kept_local(kept, summary["shared_rows"], least), "nothing", "not their values"])
        rows.append([f"{shared} names", _names_learned(config), "none but its own"])
        up_to = f"up to {least - 1} others, by position" if least > 1 else "no"
        counts = {"secret": "yes, from the sums", "plain": "yes, by position"}.get(config["aggregation"], up_to)
        rows.append(["how many hold a row", _counts_learned(config), counts])
    metrics = "their sums" if config["aggregation"] == "secret" else "none"
    rows.append(["validation and test metrics", learned, metrics])
    rows.append(["triples and rows that are not shared", "none", "none but its own"])
    secure = config["aggregation"] != "plain"
    rows.append(["who took part in which sum", "yes", "who of its neighbours dropped out" if secure else "nothing"])
    if shared is not None:
        lost = f"at most {summary['max_fixed_point_error']:.1e} per value; {summary['clipped_values']:,} values clipped"
        rows.append(["what fixed-point encoding lost", lost, ""])
    return stacked_table(("", "the server learned", "another client learned"), rows)


def _kept_local(kept: int | None, rows: int, least: int) -> str:
    which = f"rows held by fewer than {least} clients"
    return which if kept is None else f"{which}: {kept} of {rows} stayed local"


def _names_learned(config: dict[str, Any]) -> str:
    if config["alignment"] == "plain":
        return "every client's (plain alignment)"
    return "the names, not who holds them" if config["reveal_names"] else "how many there are"


def _counts_learned(config: dict[str, Any]) -> str:
    if config["aggregation"] == "secret":
        return "no"
    return "yes" if config["aggregation"] == "plain" or config["min_holders"] < 2 else "of rows that were added up"
