"""FedR's rows of NoGE, a graph network: part of its Table 2, apart because no setting of training is the same."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.reproduction.paper_figures import FEDR_CLIENTS, FEDR_TABLE_2_NOGE
from benchmarks.reproduction.settings import TableSettings
from benchmarks.reproduction.table import ALL, Claim, Dataset, Table
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.models.networks.noge_config import NogeConfig

_MODEL: Final = "NoGE"


@dataclass(frozen=True, slots=True)
class NogeSettings(TableSettings):
    """Of runs that train NoGE. Defaults are those of FedR's appendix B, and of its code where that says nothing."""

    dim: int = 128
    local_epochs: int = 3
    lr: float = 0.01
    batch_size: int = 1024
    dropout: float = 0.5
    label_smoothing: float = 0.1
    max_norm: float = 0.5
    means_loaded: str = "for-evaluation"
    moments: str = "anew"
    rounds: int = 300
    eval_every: int = 5
    patience: int = 5

    def told(self, model: str) -> dict[str, Any]:
        return {"model": model, **dataclasses.asdict(self)}

    def check(self) -> None:
        values, own = self.told(_MODEL), {entry.name for entry in dataclasses.fields(NogeConfig)}
        config = NogeConfig(**{name: value for name, value in values.items() if name in own})
        RunConfig(**{name: value for name, value in values.items() if name not in own}, network=config)


def _paper(dataset: str, clients: int, model: str, strategy: str, part: str, metric: str) -> float | None:
    figures = FEDR_TABLE_2_NOGE.get(dataset.removesuffix("-published"), {}).get(strategy)
    if figures is None or clients not in FEDR_CLIENTS or metric != "mrr" or part != ALL:
        return None
    return figures[FEDR_CLIENTS.index(clients)]


NETWORK_TABLES: Final[dict[str, Table]] = {
    "fedr-table2-noge": Table(
        title="FedR (Zhang et al. 2022), Table 2, NoGE: link prediction, MRR, tail side, filtered",
        datasets={
            "ddb14": Dataset("ddb14"),
            "ddb14-published": Dataset("ddb14-fed/fed{clients}.npz", leaky=True),
            "wn18rr": Dataset("wn18rr"),
            "fb15k-237": Dataset("fb15k-237"),
        },
        usual_datasets=("ddb14", "wn18rr", "fb15k-237"),
        clients=FEDR_CLIENTS,
        models=(_MODEL,),
        usual_models=(_MODEL,),
        strategies=("local", "fede", "fedr"),
        metrics=("mrr", "hits@1", "hits@3", "hits@10"),
        per_client=False,
        settings=NogeSettings(),
        drawn=None,
        claims=(Claim("fedr", "local"), Claim("fede", "local"), Claim("fedr", "fede")),
        paper=_paper,
        notes=(
            "The paper loads means for evaluations only and says that they do not influence training. In its code "
            "they stay from then on, every fifth round: that is `for-evaluation`. `every-round` is the sound way.",
            "The paper's code trains Local with one Adam for at least 1,000 epochs, and stops at the first epoch after "
            "these whose validation MRR is no better than the best. FedE and FedR begin a new Adam in every round. So "
            "does Local here, which has the rounds of the others, unless --tuned local moments=kept is given.",
            "The paper tests entity rows, and the server's relation rows, of the best round with the encoder of the "
            "last one. Here all parameters are those of the best round.",
            "The paper's ranks order equal scores by chance of the sort. Here ties are shared.",
            "ddb14-published is the authors' own split, in which 23 to 40 % of a client's test triples stand in its "
            "own train part.",
        ),
    ),
}
