"""Report section on disclosures: who learned what in a run."""

from protocols.foundation.disclosure import NOTHING, Subject
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.recorded import RecordedSettings
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.words import counted
from secure_kg.report.html import Html, stacked_table
from secure_kg.runs.records.summary import Summary


def adversary(settings: RecordedSettings, corrupt: int) -> str:
    """Against whom the protocols of a run stand, and what a client on the server's side changes.

    `corrupt`: so many clients are declared to be on the server's side.
    """
    if STRATEGIES[settings.strategy].pools:
        return "All triples in one place violate the privacy of every client; this run is there to be compared with."
    disclosed = Disclosed.of_summary(settings)
    if not disclosed.sums.hides_contributions:
        return f"Against {disclosed.sums.disclosure.against}."
    server = (
        "a server that may break the protocol (clients signed keys and survivors)"
        if settings.adversary == "active"
        else "a server that follows the protocol but is curious"
    )
    together = "; ".join(disclosed.with_a_client())
    return (
        f"Against {server}, together with {counted(corrupt, 'client')} "
        f"({settings.max_corrupt:.0%} of all, rounded down). What one client on its side opens to the server: "
        f"{together}.{_between_two(disclosed)}"
    )


def _between_two(disclosed: Disclosed) -> str:
    if not disclosed.aligned or disclosed.least_holders != 2:
        return ""
    return " Of a row of two holders, either can compute the other's from the mean."


def privacy(summary: Summary) -> Html:
    settings = summary.settings
    if STRATEGIES[settings.strategy].pools:
        everything = ["triples, rows and metrics of every client", "all of them"]
        return stacked_table(("", "whoever ran this learned"), [everything])
    rows, disclosed = [], Disclosed.of_summary(settings)
    for told in disclosed.statements():
        kept = _stayed_local(summary) if told.subject is Subject.RARE_ROWS else ""
        rows.append([told.heading + kept, told.server, told.client])
    rows.append(["triples and rows that are not shared", NOTHING, NOTHING])
    if disclosed.shared is not None:
        lost = "told to nobody: it depends on triples" if settings.privacy is not None else "known to each client"
        if summary.max_fixed_point_error is not None:
            lost = f"at most {summary.max_fixed_point_error:.1e} per value; {summary.clipped_values:,} values clipped"
        rows.append(["what fixed-point encoding lost", lost, ""])
    return stacked_table(("", "the server learned", "another client learned"), rows)


def _stayed_local(summary: Summary) -> str:
    kept = summary.rows_kept_local
    return "" if kept is None else f": {kept} of {summary.shared_rows} stayed local"
