"""The tables that can be measured again: their data, their settings, what they claim, and where we cannot follow."""

from typing import Final

from benchmarks.reproduction.network_table_7 import FEDR_TABLE_7_TABLE
from benchmarks.reproduction.network_tables import NETWORK_TABLES
from benchmarks.reproduction.paper_figures import (
    FEDE_METRICS,
    FEDE_TABLE_3,
    FEDE_TABLE_4,
    FEDE_TABLE_5,
    FEDR_CLIENTS,
    FEDR_TABLE_2,
)
from benchmarks.reproduction.query_tables import QUERY_TABLES
from benchmarks.reproduction.settings import Settings, StudySettings
from benchmarks.reproduction.table import ALL, Claim, Dataset, Table

MODELS: Final = ("TransE", "RotatE", "DistMult", "ComplEx")


def _fedr_table_2(dataset: str, clients: int, model: str, strategy: str, part: str, metric: str) -> float | None:
    figures = FEDR_TABLE_2.get(dataset.removesuffix("-published"), {}).get(model, {}).get(strategy)
    if figures is None or clients not in FEDR_CLIENTS or metric != "mrr" or part != ALL:
        return None
    return figures[FEDR_CLIENTS.index(clients)]


def _fede_tables_3_and_4(dataset: str, clients: int, model: str, strategy: str, part: str, metric: str) -> float | None:
    printed = FEDE_TABLE_4 if dataset == "nell-995" else FEDE_TABLE_3
    figures = printed.get(model, {}).get(strategy)
    if figures is None or clients != len(figures) or metric not in FEDE_METRICS or part == ALL:
        return None
    return figures[int(part.split()[-1]) - 1][FEDE_METRICS.index(metric)]


def _fede_table_5(dataset: str, clients: int, model: str, strategy: str, part: str, metric: str) -> float | None:
    if model != "RotatE" or metric != "mrr" or part != ALL:
        return None
    name = "NELL-995" if dataset == "nell-995" else "FB15k-237"
    return FEDE_TABLE_5.get(f"{name}-Fed{clients}", {}).get(strategy)


_FEDLU: Final = {"fb15k-237-fedlu": Dataset("fb15k-237-fedlu/r{clients}.npz")}
_NELL: Final = {"nell-995": Dataset("nell-995", by="relations")}
_FEDE_SETTINGS: Final = Settings(dim=256, patience=3)
_STUDY_SETTINGS: Final = StudySettings(dim=256, patience=3)
_FEDE_NOTES: Final = (
    "FedE's own split files are not to be had: these are FedLU's splits of FB15k-237, relations divided at random as "
    "by FedE but drawn anew. Client K here is another than the paper's: orderings can be compared, single "
    "figures hardly.",
    "A few held-out triples of FedLU's splits have an entity that the client does not train on (3 of 31,013 test "
    "triples in 3 clients, 50 in 5, 77 in 10).",
    "FedE stops after 15 rounds without a better validation MRR, at an evaluation every 5: patience 3. It names no "
    "largest number of rounds: 300, as in FedR.",
    "Single and Entire are evaluated every 10 epochs in the paper; here they go by rounds of local epochs like FedE.",
    "The paper draws 5 clients for each round (all 3 of 3); among 10 clients this needs --max-dropout 0.2, since sums "
    "of five leave no room for more.",
)
_NELL_NOTE: Final = (
    "FedE's split of NELL-995 is not to be had: the seed divides its relations among 3 clients as the paper says, so "
    "client K is another in every run. Orderings can be compared, single figures hardly."
)
_FEDE_FUSED: Final = "The paper's FedE is read as FedE with model fusion and stands beside it; Single is Local here."
_SHARED_NEGATIVES: Final = (
    "The papers' code draws negatives for each triple; here 128 triples of a batch share theirs, and those that are "
    "training triples have no weight."
)

TABLES: Final[dict[str, Table]] = {
    "fedr-table2": Table(
        title="FedR (Zhang et al. 2022), Table 2: link prediction, MRR, tail side, filtered",
        datasets={
            "ddb14": Dataset("ddb14"),
            "ddb14-published": Dataset("ddb14-fed/fed{clients}.npz", leaky=True),
            "wn18rr": Dataset("wn18rr"),
            "fb15k-237": Dataset("fb15k-237"),
        },
        usual_datasets=("ddb14", "wn18rr", "fb15k-237"),
        clients=FEDR_CLIENTS,
        models=MODELS,
        usual_models=MODELS,
        strategies=("local", "fede", "fedr"),
        metrics=("mrr", "hits@1", "hits@3", "hits@10"),
        per_client=False,
        settings=Settings(),
        drawn=None,
        claims=(Claim("fedr", "local"), Claim("fede", "local"), Claim("fedr", "fede")),
        paper=_fedr_table_2,
        notes=(
            "The table's fifth model, NoGE, has settings of its own: fedr-table2-noge.",
            "ddb14, wn18rr and fb15k-237 are divided anew by triples: FedR's files of the last two are not to be had.",
            "ddb14-published is the authors' own split of DDB14. It is damaged: half of the triples are missing, "
            "others are repeated, and 23 to 40 % of a client's test triples stand in its own train part. By all "
            "appearance the paper's figures for DDB14 were measured on it, and leaked triples raise them: for ddb14, "
            "the sound split, look at the order of strategies.",
            _SHARED_NEGATIVES,
            "FedR does not say how many clients take part in a round: here all do. It follows FedE where it says "
            "nothing: batches of 512. Its patience is said to count epochs: here it counts evaluations.",
        ),
    ),
    "fede-table3": Table(
        title="FedE (Chen et al. 2021), Table 3: FB15k-237 divided by relations, per client, tail side, filtered",
        datasets=_FEDLU,
        usual_datasets=tuple(_FEDLU),
        clients=(3,),
        models=MODELS,
        usual_models=MODELS,
        strategies=("local", "entire", "fede", "fused"),
        metrics=FEDE_METRICS,
        per_client=True,
        settings=_FEDE_SETTINGS,
        drawn=5,
        claims=(Claim("fused", "local"), Claim("fused", "entire"), Claim("fede", "local")),
        paper=_fede_tables_3_and_4,
        notes=(
            *_FEDE_NOTES,
            _SHARED_NEGATIVES,
            _FEDE_FUSED,
        ),
    ),
    "fede-table4": Table(
        title="FedE (Chen et al. 2021), Table 4: NELL-995 divided by relations, per client, tail side, filtered",
        datasets=_NELL,
        usual_datasets=tuple(_NELL),
        clients=(3,),
        models=MODELS,
        usual_models=MODELS,
        strategies=("local", "entire", "fede", "fused"),
        metrics=FEDE_METRICS,
        per_client=True,
        settings=_FEDE_SETTINGS,
        drawn=5,
        claims=(Claim("fused", "local"), Claim("fused", "entire"), Claim("fede", "local")),
        paper=_fede_tables_3_and_4,
        notes=(_NELL_NOTE, *_FEDE_NOTES[2:4], _SHARED_NEGATIVES, _FEDE_FUSED),
    ),
    "fede-table5": Table(
        title="FedE (Chen et al. 2021), Table 5: what model fusion adds, MRR over all clients, tail side, filtered",
        datasets=_FEDLU | _NELL,
        usual_datasets=tuple(_FEDLU),
        clients=(3, 5, 10),
        models=MODELS,
        usual_models=("RotatE",),
        strategies=("fede", "fused"),
        metrics=("mrr", "hits@1", "hits@3", "hits@10"),
        per_client=False,
        settings=_FEDE_SETTINGS,
        drawn=5,
        claims=(Claim("fused", "fede"),),
        paper=_fede_table_5,
        notes=(
            *_FEDE_NOTES,
            _SHARED_NEGATIVES,
            "The paper does not name the model of this table; it is read as RotatE, which the section's other "
            "experiments use. NELL-995 is run only if named, in 3 clients.",
            _NELL_NOTE,
        ),
    ),
    "fede-figures": Table(
        title="FedE (Chen et al. 2021), Figures 5 to 8: FB15k-237 in 10 clients by relations, tail side, filtered",
        datasets=_FEDLU,
        usual_datasets=tuple(_FEDLU),
        clients=(10,),
        models=MODELS,
        usual_models=("RotatE",),
        strategies=("fede",),
        metrics=FEDE_METRICS,
        per_client=False,
        settings=_STUDY_SETTINGS,
        drawn=None,
        claims=(),
        paper=lambda *_: None,
        notes=(
            *_FEDE_NOTES[:3],
            _SHARED_NEGATIVES,
            "The figures have no numbers: `python -m benchmarks.studies` draws ours. A fraction of 0.1 would be one "
            "client, and a sum of one client is no sum: two take part.",
        ),
    ),
    "fedr-table7": FEDR_TABLE_7_TABLE,
    **NETWORK_TABLES,
    **QUERY_TABLES,
}
