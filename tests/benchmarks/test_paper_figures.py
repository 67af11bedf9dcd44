"""The figures of the papers: complete, plausible, and right where they were read off by hand."""

import itertools

import pytest

from benchmarks.reproduction.paper_figures import (
    FEDE_METRICS,
    FEDE_TABLE_3,
    FEDE_TABLE_5,
    FEDR_CLIENTS,
    FEDR_TABLE_2,
    FEDR_TABLE_7,
)
from benchmarks.reproduction.query_figures import FEDCQA_TABLE_3, FEDCQA_TABLE_4
from benchmarks.reproduction.query_tables import ENCODERS
from benchmarks.reproduction.table import ALL
from benchmarks.reproduction.tables import MODELS, TABLES


def test_fedr_table_2_is_complete() -> None:
    assert list(FEDR_TABLE_2) == ["ddb14", "wn18rr", "fb15k-237"]
    for dataset, model in itertools.product(FEDR_TABLE_2, MODELS):
        assert list(FEDR_TABLE_2[dataset][model]) == ["local", "fede", "fedr"]
        for figures in FEDR_TABLE_2[dataset][model].values():
            assert len(figures) == len(FEDR_CLIENTS)
            assert all(0 < figure < 1 for figure in figures)


def test_fedr_table_7_is_complete() -> None:
    assert list(FEDR_TABLE_7) == ["RotatE", "KBGAT"]
    for strategies in FEDR_TABLE_7.values():
        assert list(strategies) == ["local", "fede", "fedr"]
        for mrr, hits_1, hits_3, hits_10 in strategies.values():
            assert hits_1 < mrr < hits_10 < 1
            assert hits_1 < hits_3 < hits_10


def test_fede_tables_are_complete() -> None:
    assert set(FEDE_TABLE_3) == set(MODELS)
    for strategies in FEDE_TABLE_3.values():
        assert list(strategies) == ["local", "entire", "fused"]
        for clients in strategies.values():
            assert [len(figures) for figures in clients] == [len(FEDE_METRICS)] * 3
            for mrr, hits_1, hits_5, hits_10 in clients:
                assert hits_1 < mrr < hits_5 < hits_10 < 1
    assert len(FEDE_TABLE_5) == 4
    assert all(figures["fede"] < figures["fused"] for figures in FEDE_TABLE_5.values())


def test_fedcqas_tables_are_complete() -> None:
    for figures, strategies in (
        (FEDCQA_TABLE_3, ["local", "central", "fede", "fedr", "fedcqa"]),
        (FEDCQA_TABLE_4, ["local", "fedcqa"]),
    ):
        for dataset, model in itertools.product(("fb15k-237", "fb15k", "nell-995"), ENCODERS):
            rows = figures[dataset][model]
            assert {*strategies} - {*rows} <= {"local"}
            for strategy, row in rows.items():
                assert len(row) == (2 if strategy in ("local", "fedr") else 4)
                assert all(5 < figure < 50 for figure in row)


@pytest.mark.parametrize(
    ("table", "dataset", "clients", "model", "strategy", "part", "metric", "figure"),
    [
        ("fedr-table2", "ddb14", 5, "TransE", "local", ALL, "mrr", 0.4206),
        ("fedr-table2", "ddb14-published", 20, "ComplEx", "fedr", ALL, "mrr", 0.2611),
        ("fedr-table2", "wn18rr", 10, "RotatE", "fede", ALL, "mrr", 0.1936),
        ("fedr-table2", "fb15k-237", 15, "DistMult", "fedr", ALL, "mrr", 0.0884),
        ("fedr-table7", "ddb14-published", 3, "RotatE", "fede", ALL, "hits@10", 0.7916),
        ("fedr-table7", "ddb14-published", 3, "RotatE", "fede", ALL, "both hits@10", None),
        ("fedr-table7", "ddb14-published", 3, "KBGAT", "local", ALL, "both mrr", 0.4467),
        ("fedr-table7", "ddb14-published", 3, "KBGAT", "local", ALL, "mrr", None),
        ("fedr-table7", "ddb14-published", 3, "KBGAT", "fedr", ALL, "both hits@3", 0.5301),
        ("fedr-table7", "ddb14-published", 5, "KBGAT", "fedr", ALL, "both hits@3", None),
        ("fede-table3", "fb15k-237-fedlu", 3, "TransE", "local", "client 1", "mrr", 0.5035),
        ("fede-table3", "fb15k-237-fedlu", 3, "RotatE", "entire", "client 2", "hits@10", 0.6733),
        ("fede-table3", "fb15k-237-fedlu", 3, "ComplEx", "fused", "client 3", "hits@1", 0.2449),
        ("fede-table5", "fb15k-237-fedlu", 10, "RotatE", "fused", ALL, "mrr", 0.4340),
        ("fedcqa-table3", "fb15k-237", 3, "GQE", "fedcqa", ALL, "cross mrr", 0.1132),
        ("fedcqa-table4", "nell-995", 5, "Q2P", "local", ALL, "hits@3", 0.2003),
        ("fedcqa-table3", "fb15k-237", 3, "GQE", "local", ALL, "cross mrr", None),
        ("fedcqa-table3", "fb15k-237", 3, "GQE", "fedcqa", ALL, "hits@10", None),
        ("fedcqa-table4", "fb15k", 3, "GQE", "fedcqa", ALL, "mrr", None),
        ("fedr-table2-noge", "ddb14-published", 5, "NoGE", "local", ALL, "mrr", 0.3178),
        ("fedr-table2-noge", "wn18rr", 20, "NoGE", "fede", ALL, "mrr", 0.0533),
        ("fedr-table2-noge", "fb15k-237", 10, "NoGE", "fedr", ALL, "mrr", 0.1822),
        ("fedr-table2-noge", "ddb14", 5, "NoGE", "fedr", ALL, "hits@1", None),
        ("fedr-table2", "ddb14", 2, "TransE", "local", ALL, "mrr", None),
        ("fedr-table2", "ddb14", 5, "TransE", "local", ALL, "hits@10", None),
        ("fede-table3", "fb15k-237-fedlu", 5, "TransE", "local", "client 1", "mrr", None),
        ("fede-table3", "fb15k-237-fedlu", 3, "TransE", "fede", "client 1", "mrr", None),
        ("fede-table5", "fb15k-237-fedlu", 3, "TransE", "fede", ALL, "mrr", None),
    ],
)
def test_cells_read_by_hand(
    table: str, dataset: str, clients: int, model: str, strategy: str, part: str, metric: str, figure: float | None
) -> None:
    assert TABLES[table].paper(dataset, clients, model, strategy, part, metric) == figure
