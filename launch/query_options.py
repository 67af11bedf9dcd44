"""What `--help` says of the settings of training on queries: a group of options in place of those of triples."""

from typing import Final

TITLE: Final = "training on queries"
QUERY_OPTIONS: Final[dict[str, str]] = {
    "encoder": "gqe (Hamilton et al. 2018), q2p (Query2Particles) or tree-lstm, as FedCQA uses them",
    "dim": "embedding dimension",
    "score": "how an encoded query is compared with entities: l2, squared (L2 without the root), dot (inner product); "
    "usual is l2 for gqe and dot for the others; hidden questions need squared or dot",
    "particles": "points of one entity under q2p",
    "published": "encode as the public code of FedCQA does, where that differs from the papers: gqe's intersection, "
    "q2p's attention",
    "train_types": "types of the queries that are trained on, with commas between them",
    "test_types": "types of the queries that results are of; those with a negation need --encoder q2p",
    "answers": "how answers of training queries are drawn: edges, as often as they have edges; entities, all alike",
    "batch_size": "queries of each type in a step",
    "local_steps": "steps per round; every one draws fresh queries from the client's own graph",
    "negatives": "entities that all queries of a step are compared with; all of them if there are not so many",
    "lr": "learning rate of AdamW",
    "lr_decay": "factor of the learning rate from one round to the next",
    "weight_decay": "weight decay of AdamW",
    "step": "how far a shared row goes along what a round has taught its holders: 1 is their mean; more makes up for "
    "what a mean over several holders takes away",
    "operator_weights": "how much a client's operators count in their mean: equal, or by its number of train triples; "
    "whoever reads these sums then also reads the total of those numbers",
    "eval_queries": "queries of each type that a client is judged by, each with an answer that training cannot see",
    "eval_megabytes": "memory for scores when ranking",
}
