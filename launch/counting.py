"""Closing lines on counting: whether a table of counts under the same budget ranks better than what was trained."""

from collections.abc import Iterable, Sequence

from secure_kg.foundation.console import say
from secure_kg.foundation.invocation import command
from secure_kg.runs.records.summary import Summary


def say_counting(summary: Summary, beside: Sequence[Summary]) -> None:
    """One sentence on a private run, always. `beside`: runs that compare with it."""
    privacy = summary.settings.privacy
    if privacy is None or privacy.epsilon is None or privacy.delta is None:
        return
    budget = (privacy.epsilon, privacy.delta)
    known = [one for one in (*beside, summary) if _budget(one) == budget]
    counts, trained = (_best(one for one in known if _counts(one) is wanted) for wanted in (True, False))
    if counts is None and not privacy.counts:
        how = f"{command('launch.fede')} --dp counts --epsilon {budget[0]:g} --delta {budget[1]:g}"
        say(
            f"compare with counting: {how}, with the same data options and another --out beside this one, spends the "
            "same budget on one noised table and trains nothing; what ranks tails no better was not worth training"
        )
    elif counts is not None and trained is not None:
        told = f"tail MRR {counts:.4f} by counting, {trained:.4f} by the best training beside it, under the same budget"
        say(f"counting wins: {told}" if counts >= trained else f"training wins: {told}")


def _budget(summary: Summary) -> tuple[float | None, float | None] | None:
    privacy = summary.settings.privacy
    return None if privacy is None else (privacy.epsilon, privacy.delta)


def _counts(summary: Summary) -> bool:
    return summary.settings.privacy is not None and summary.settings.privacy.counts


def _best(runs: Iterable[Summary]) -> float | None:
    return max((found for one in runs if (found := tail_mrr(one)) is not None), default=None)


def tail_mrr(summary: Summary) -> float | None:
    """Of the federation; where it was not told, of the clients, if all of their own results lie in this run folder."""
    if summary.told:
        return float(summary.figures["mrr"])
    lines = [(one.examples, one.figures.get("mrr")) for one in summary.clients]
    examples = sum(number for number, _ in lines)
    if len(lines) < summary.number_of_clients or not examples or any(mrr is None for _, mrr in lines):
        return None
    return sum(number * float(mrr) for number, mrr in lines if mrr is not None) / examples
