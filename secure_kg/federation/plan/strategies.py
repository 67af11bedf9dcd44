"""Strategies: what clients share. A strategy is data; the round loop is the same for all of them.

`local` and `entire` are the bounds of a federation, FedE's settings Single and Entire (Chen et al. 2021, section 3.2):
every client by itself, and all triples in one place, which gives up all privacy.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from secure_kg.federation.plan.learners import KGE, LearnerKind

Shared = Literal["relation", "entity"]
"""A table of the model whose rows clients share, each row under the name of what it stands for."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """`shared` names the table whose rows are aligned and averaged; None: nobody shares anything.

    `pools`: all clients' triples are trained on by one process.
    """

    name: str
    title: str
    choice: str
    """For `--help`, after the name of the choice."""
    shared: Shared | None
    pools: bool = False
    learner: LearnerKind = field(default=KGE, repr=False)

    @property
    def union_bound(self) -> int:
        """How large a union the private set union expects at first; a larger one takes another attempt."""
        return 16384 if self.shared == "entity" else 1024


STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Strategy("fedr", "FedR", "relation rows", "relation"),
        Strategy("fede", "FedE", "entity rows", "entity"),
        Strategy("local", "Local", "nothing", None),
        Strategy("entire", "Entire", "all triples in one place (python -m launch.entire)", None, pools=True),
    )
}
