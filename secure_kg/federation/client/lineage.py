"""Lineages: inputs of one client and lineage are nearly the same in every run (`protocols.sums.secagg.openings`).

Training begins at rows that follow from the graph and the seed, and takes its draws from the seed and the round. So two
runs of one seed whose learning rates differ in the last digit, or whose tables a server has moved by as little, have
nearly the same inputs in every round, under states that have nothing in common. A lineage has what changes inputs
altogether: strategy, model, dimension, seed, kind of sum and round. It does not have what may change them by little:
learning rate, epochs, batches, data, or the other clients. Strategies for queries are one family: rows under the same
names begin alike in all of them, and are trained nearly alike.
"""

from secure_kg.federation.plan.run_plan import RESULTS, RunPlan


def lineage(plan: RunPlan, purpose: str, round_id: int, trained: int) -> str:
    """The lineage of a client's input to a sum; empty if inputs differ in every run. `trained`: its last round."""
    match purpose:
        case "valid" if plan.sees_survivors:
            number = trained  # a client that was not drawn since has the results that it had
        case "test":
            number = 0  # a server chooses the round in which a run ends
        case _ if any(purpose == block.purpose for block in plan.blocks):
            number = round_id
        case _:
            return ""
    settings, family = plan.settings, plan.strategy.family
    if purpose not in RESULTS and not plan.trains(number):
        # First rows follow from graph, seed and name: another width gives more or fewer numbers of the same rows.
        return f"{family}/{settings.seed}/{purpose}/{number}"
    return f"{family}/{settings.model}/{settings.dim}/{settings.seed}/{purpose}/{number}"


def seed_in(lineage: str) -> str:
    """The seed that a lineage names; empty if it is none."""
    parts = lineage.split("/")
    return parts[-3] if len(parts) in (4, 6) else ""
