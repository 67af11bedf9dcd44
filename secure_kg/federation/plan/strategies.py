"""Strategies: what clients share. A strategy is data; the round loop is the same for all of them.

`local` and `entire` are the bounds of a federation, FedE's settings Single and Entire (Chen et al. 2021, section 3.2):
every client by itself, and all triples in one place, which gives up all privacy. `all-rows` shares both tables of
embeddings in one block, for models whose rows are all as wide: nothing of a model is then any client's own. Those of
`fedcqa` train on logical queries (Hu et al. 2024) and are compared with each other: Local, Central, and FedE and FedR
as that paper adapts them.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from secure_kg.federation.plan.learners import KGE, NETWORK, QUERIES, LearnerKind
from secure_kg.foundation.errors import UserError
from secure_kg.models.networks.kinds import network_kind

if TYPE_CHECKING:
    from secure_kg.federation.plan.settings import RunConfig

Shared = Literal["relation", "entity", "entity and relation"]
"""Tables of the model whose rows clients share, each row under the name of what it stands for."""


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
    def family(self) -> str:
        """A name for all strategies whose clients have nearly the same inputs."""
        return "fedcqa" if self.learner.of_queries else self.name

    @property
    def union_bound(self) -> int:
        """How large a union the private set union expects at first; a larger one takes another attempt."""
        return 1024 if self.shared in (None, "relation") else 16384


STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Strategy("fedr", "FedR", "relation rows", "relation"),
        Strategy("fede", "FedE", "entity rows", "entity"),
        Strategy("all-rows", "All rows", "entity rows and relation rows", "entity and relation"),
        Strategy("local", "Local", "nothing", None),
        Strategy("entire", "Entire", "all triples in one place (python -m launch.entire)", None, pools=True),
        Strategy("fedcqa", "FedCQA", "all rows, and operators", "entity and relation", False, QUERIES),
        Strategy("fedcqa-fede", "FedE for queries", "rows of entities, and operators", "entity", False, QUERIES),
        Strategy("fedcqa-fedr", "FedR for queries", "rows of relations, and operators", "relation", False, QUERIES),
        Strategy("fedcqa-local", "Local for queries", "nothing", None, False, QUERIES),
        Strategy("fedcqa-central", "Central for queries", "all triples in one place", None, True, QUERIES),
    )
}


def learner_of(settings: "RunConfig") -> LearnerKind:
    """The kind of learner of a run: its strategy's, or that of graph networks where one takes the embeddings' place."""
    return STRATEGIES[settings.strategy].learner if settings.network is None else NETWORK


def require_network(settings: "RunConfig", strategy: Strategy) -> None:
    """Refuse what has no meaning for a graph network."""
    name = f"--model {settings.model.lower()}"
    if settings.network is None or type(settings.network) is not network_kind(settings.network.model).settings:
        raise ValueError("settings of one network under the name of another")
    if strategy.learner is not KGE:
        raise UserError(f"{name}: --strategy {strategy.name} has a learner of its own")
    if settings.privacy is not None:
        raise UserError(f"--dp: private gradients are those of embedding models, and {name} is a graph network")
