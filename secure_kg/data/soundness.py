"""What makes an evaluation on a client's graph meaningless, counted. Counts only: no name or triple is shown."""

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.triples import PARTS
from secure_kg.data.vocabulary import triple_keys
from secure_kg.errors import DataError


def problems(graph: ClientGraph) -> list[str]:
    """One phrase for each fault, worst first; an empty list for a sound graph.

    Leaks (a held-out triple that was trained on) raise the reported quality; repeated triples weigh some facts more;
    a held-out entity or relation without a training triple has an embedding that nothing ever trained.
    """
    keys = {part: triple_keys(graph.part(part), len(graph.entities), len(graph.relations)) for part in PARTS}
    found = []
    leaks: tuple[tuple[Part, Part], ...] = (("test", "train"), ("test", "valid"), ("valid", "train"))
    for held_out, known in leaks:
        if leaked := int(np.isin(keys[held_out], keys[known]).sum()):
            found.append(f"{leaked} of {len(keys[held_out])} {held_out} triples also stand in {known}")
    for part in PARTS:
        if repeated := len(keys[part]) - len(np.unique(keys[part])):
            found.append(f"{repeated} repeated triples in {part}")
    for kind, column in (("entities", [0, 2]), ("relations", [1])):
        if untrained := len(np.setdiff1d(_ids(graph, PARTS[1:], column), _ids(graph, PARTS[:1], column))):
            found.append(f"{untrained} {kind} of valid and test do not occur in train")
    return found


def check_sound(graph: ClientGraph, where: str) -> None:
    """Raise one DataError with all faults of the graph; `where` says whose graph it is."""
    if found := problems(graph):
        raise DataError(f"{where}: {'; '.join(found)}")


def check_complete(graph: ClientGraph, where: str, advice: str) -> None:
    """Raise a DataError unless train, valid and test all hold triples.

    Without valid a client cannot stop early, and without test it has no weight in the reported mean.
    """
    for part, word in zip(PARTS, ("training", "validation", "test"), strict=True):
        if len(graph.part(part)) == 0:
            raise DataError(f"{where} has no {word} triples; {advice}")


def _ids(graph: ClientGraph, parts: tuple[Part, ...], column: list[int]) -> npt.NDArray[np.int64]:
    return np.concatenate([graph.part(part)[:, column].ravel() for part in parts])
