"""FedCQA's tables: encoders of logical queries, judged within clients' graphs and across them."""

from typing import Final

from benchmarks.reproduction.query_figures import FEDCQA_TABLE_3, FEDCQA_TABLE_4, METRICS, Row
from benchmarks.reproduction.settings import QuerySettings
from benchmarks.reproduction.table import ALL, Claim, Dataset, Paper, Table

ENCODERS: Final = ("GQE", "Q2P", "tree-LSTM")
CROSS: Final = "cross "
"""Before the name of a metric on queries across graphs."""
_STRATEGIES: Final = ("local", "central", "fede", "fedr", "fedcqa")
_DATASETS: Final = {
    "fb15k-237": Dataset("fb15k-237-fedlu/r{clients}.npz"),
    "nell-995": Dataset("nell-995-q2b", by="relations"),
    "fb15k": Dataset("fb15k", by="relations"),
}
_NOTES: Final = (
    "fb15k-237: FedLU's splits, relations divided at random as in FedCQA, but drawn anew; a few held-out triples have "
    "an entity that the client does not train on. nell-995 and fb15k are divided by relations here.",
    "Queries are drawn here, by every client from its own graph and across graphs from all together; those of the "
    "paper are not to be had. Figures on other queries are not comparable: look at the order of strategies.",
    "The public code checks the clients of a stale variable, so cross-graph test queries of the paper may lie in one "
    "graph (about a third of those with two relations). Here every query is checked.",
    "Means are over a query's hard answers, over queries, over types: eight types in-graph, seven cross-graph (one "
    "atom crosses nothing). In-graph candidates are the client's own entities. Cross-graph candidates are all entities "
    "that somebody holds, and rows are means over holders, as in a question with --min-holders 1.",
    "Inverse relations are used here, as by Query2box, and not in FedCQA. Its loss is over all entities; here the "
    "negatives of a step are shared by all its queries.",
    "Local and FedR have nothing in common to ask each other with: no cross-graph figures, in the paper as here.",
)


def _printed(figures: dict[str, dict[str, dict[str, Row]]], number: int) -> Paper:
    def paper(dataset: str, clients: int, model: str, strategy: str, part: str, metric: str) -> float | None:
        row = figures.get(dataset, {}).get(model, {}).get(strategy, ())
        place = METRICS.index(metric) if metric in METRICS else len(row)
        return round(row[place] / 100, 4) if clients == number and part == ALL and place < len(row) else None

    return paper


def _table(title: str, clients: int, figures: dict[str, dict[str, dict[str, Row]]]) -> Table:
    return Table(
        title=f"FedCQA (Hu et al. 2024), {title}: hard answers of logical queries, {clients} clients, filtered",
        datasets=_DATASETS,
        usual_datasets=("fb15k-237", "nell-995"),
        clients=(clients,),
        models=ENCODERS,
        usual_models=("GQE",),
        strategies=_STRATEGIES,
        metrics=("mrr", f"{CROSS}mrr", "hits@3", f"{CROSS}hits@3", "hits@1", "hits@10"),
        per_client=False,
        settings=QuerySettings(),
        drawn=None,
        claims=(
            Claim("fedcqa", "local"),
            Claim("fedcqa", "central"),
            Claim("fedcqa", "central", f"{CROSS}mrr"),
            Claim("fedcqa", "fede", f"{CROSS}mrr"),
        ),
        paper=_printed(figures, clients),
        notes=_NOTES,
        shown=2,
        aggregation="secret",
    )


QUERY_TABLES: Final = {
    "fedcqa-table3": _table("Table 3", 3, FEDCQA_TABLE_3),
    "fedcqa-table4": _table("Table 4", 5, FEDCQA_TABLE_4),
}
