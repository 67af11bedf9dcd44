"""What the answers of one recorded session tell their askers together: a note with counts, and what these are worth.

The counts are of batches that were announced, so at most so much was read. What was in them nobody sees here: the note
says what an asker could have made of so many answers, by the measurements of docs/question-leaks.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from protocols.bundles import AskerReads
from protocols.lookup_registry import EXACT, NAMES, VECTORS, batch_kind
from secure_kg.audit.records.parts import Note
from secure_kg.runs.records.scores import ScoreBatch, ScoreSession

TITLE: Final = "What the answers tell together"


@dataclass(slots=True)
class Read:
    """Of one asker."""

    vectors: int = 0
    means: int = 0
    """Queries whose means were opened."""
    rankings: int = 0
    """Queries of which positions alone were opened."""
    names: int = 0
    facts: int = 0
    """Atoms that were answered from stored facts."""

    def add(self, batch: ScoreBatch, dimensions: int) -> None:
        if batch.backend == VECTORS:
            self.vectors += batch.positions // max(dimensions, 1)
        elif batch.backend == NAMES:
            self.names += batch.positions
        elif batch.backend == EXACT:
            self.facts += batch.queries
        elif batch_kind(batch.backend).asker_reads is AskerReads.MEANS:
            self.means += batch.queries
        else:
            self.rankings += batch.queries

    def line(self) -> str:
        parts = (
            (self.vectors, "vector looked up", "vectors looked up"),
            (self.means, "query with opened means", "queries with opened means"),
            (self.rankings, "query with opened positions", "queries with opened positions"),
            (self.names, "position asked for its name", "positions asked for their names"),
            (self.facts, "atom answered from stored facts", "atoms answered from stored facts"),
        )
        return ", ".join(f"{number:,} {one if number == 1 else several}" for number, one, several in parts if number)


def read_by_askers(batches: Iterable[ScoreBatch], dimensions: int) -> dict[int, Read]:
    found: dict[int, Read] = {}
    for batch in batches:
        found.setdefault(batch.asker, Read()).add(batch, dimensions)
    return dict(sorted(found.items()))


def answers_together(record: ScoreSession) -> list[Note]:
    """One note; none for a session without batches."""
    read, width = read_by_askers(record.batches, record.dimensions), record.dimensions
    if not read:
        return []
    told = [f"Asker {asker}: {one.line()}." for asker, one in read.items()]
    if any(one.vectors for one in read.values()):
        told.append(
            "A vector along a relation gives the relation's row to the last rounding where relations translate points "
            "(gqe). Where a network moves points, a few answers give it as well, by least squares. A vector of an "
            "entity says that somebody holds its name, and how many do. So the number of vectors is how many rows, or "
            "names, an asker may have by now."
        )
    opened = sum(one.means for one in read.values())
    if opened and width:
        rest = "all rows that enough clients hold can be computed" if opened >= width else "the rest stays open"
        told.append(f"Means were opened in {min(opened, width)} of the {width} dimensions of a row: {rest}.")
    if any(one.rankings for one in read.values()):
        told.append("Positions give no row exactly, but an estimate that gets better with every query.")
    told.append(
        "Other sessions of the same model add to this, and askers may tell each other what they read. Clients keep "
        "budgets over all sessions. Figures are in docs/question-leaks.md."
    )
    return [Note(title=TITLE, text=" ".join(told))]
