"""Record of the split that a run was trained on, for its summary.

Only clients see triples. They count the faults of their own parts in `result.json`; the server adds up the counts that
lie on its machine and opens no triple file itself.
"""

from collections.abc import Sequence
from typing import Final

from secure_kg.data.soundness import Faults
from secure_kg.runs.records.client_result import ClientResult

_BLEMISHES: Final = ("untrained_entities", "untrained_relations", "valid_with_untrained", "test_with_untrained")
_WARNING: Final = "these figures are not comparable with those of a sound split"


def leaky_split(results: Sequence[ClientResult], clients: int, *, allowed: bool) -> dict[str, int] | None:
    """Counts of damage over the clients whose results are here; None if the split is known to be sound.

    Without leave (`allowed`) a client refuses to train on a damaged split, so a client that is elsewhere had a sound
    one. With it, nobody knows.
    """
    found, counted = _added(results)
    if not found.damage() and not (allowed and counted < clients):
        return None
    counts = {name: count for name, count in found.counts().items() if name not in (*_BLEMISHES, "dropped_repeats")}
    return {
        "test_trained_on": found.test_trained_on,
        **counts,
        "clients_counted": counted,
        "number_of_clients": clients,
    }


def blemishes(results: Sequence[ClientResult]) -> dict[str, int] | None:
    """Held-out names without a training triple, over the clients whose results are here; None if none are."""
    found, counted = _added(results)
    if not counted:
        return None
    counts = found.counts()
    told = ("test_triples", *_BLEMISHES, "dropped_repeats")
    return {name: counts[name] for name in told} | {"clients_counted": counted}


def leak_warning(leaky: dict[str, int] | None) -> str | None:
    """The line that comes before every figure of a run on a leaky split. Older summaries say nothing of it."""
    if leaky is None:
        return None
    counts = {name: count for name, count in leaky.items() if name in Faults().counts()}
    found, counted, clients = Faults(**counts), leaky["clients_counted"], leaky["number_of_clients"]
    if not found.damage():
        unseen = "not checked by the server" if not counted else f"checked for {counted} of {clients} clients only"
        return (
            f"LEAKY SPLIT ALLOWED (--allow-leaky-split): the split was {unseen}; these figures may not be comparable "
            "with those of a sound split"
        )
    what = "; ".join(found.damage())
    if found.test_trained_on:
        # Under --strategy local what others train on does no harm, so the reader must be able to tell the two apart.
        others = f", {found.test_in_other_train} of them by other clients only" if found.test_in_other_train else ""
        what = f"{found.test_trained_on} of {found.test_triples} test triples were trained on{others}"
    of = "" if counted == clients else f" (counted for {counted} of {clients} clients)"
    return f"LEAKY SPLIT: {what}{of}; {_WARNING}"


def blemish_note(counts: dict[str, int] | None) -> str | None:
    """One line, if there is anything to tell."""
    if counts is None:
        return None
    notes = []
    if counts["untrained_entities"] or counts["untrained_relations"]:
        notes.append(
            f"no training triple at their client: {counts['untrained_entities']} entities and "
            f"{counts['untrained_relations']} relations of held-out triples, in {counts['test_with_untrained']} of "
            f"{counts['test_triples']} test triples; nothing trained them there, so these rank about as by chance"
        )
    if repeats := counts.get("dropped_repeats", 0):  # older summaries do not say
        notes.append(f"{repeats} repeated lines of train count once")
    return "; ".join(notes) or None


def _added(results: Sequence[ClientResult]) -> tuple[Faults, int]:
    """The faults of those clients that tell theirs, and how many do."""
    told = [Faults(**result.split_faults) for result in results if result.split_faults is not None]
    return sum(told, start=Faults()), len(told)
