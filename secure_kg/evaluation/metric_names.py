"""Self-describing metric names for result files.

Papers on federated embeddings rank tails only, the rest of the field ranks both sides, and the two differ by more than
methods do. A number that is carried from a file into a table should carry its meaning along.
"""

from typing import Any, Final

METRICS: Final = ("mrr", "hits@1", "hits@3", "hits@5", "hits@10", "mean_rank")
_CONVENTIONS: Final = {
    "sides": "tail: (h, r, ?) only, as in the papers; both: mean over (h, r, ?) and (?, r, t), as in the rest of the "
    "field",
    "ties": "mean of best and worst rank",
    "weights": "every test triple alike",
    "candidates": "the client's own entities, other known answers left out",
}


def named_metrics(result: dict[str, Any]) -> dict[str, Any]:
    """For a result with tail-side figures at its top level and `both_sides` below: the same under names that say so.

    Null where the figures are null, that is, where only clients can read them.
    """
    known = result["both_sides"] is not None
    tail = {name: result[name] for name in METRICS if name in result} if known else None
    return {"tail": tail, "both": result["both_sides"], **_CONVENTIONS}
