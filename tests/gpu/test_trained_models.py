"""Trained models asked on a GPU answer as on the CPU, and commands refuse a GPU that is not there in one line."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.gpu.cases import Case, graphs, learners
from launch import evaluate, fuse, predict
from secure_kg.learning import device as devices
from secure_kg.learning.device import CPU
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.query_learner import QueryLearner
from secure_kg.trained.client_model import ClientModel
from secure_kg.trained.evaluating import evaluate as evaluated
from secure_kg.trained.scorers import EmbeddingScorer, QueryScorer, Scorer

CASES = {case.name: case for case in learners() if case.name in ("TransE", "DistMult", "gqe")}


def scorer(case: Case, device: torch.device) -> Scorer:
    learner = case.make(device)
    if isinstance(learner, KgeLearner):
        return EmbeddingScorer(learner.model.requires_grad_(False))
    assert isinstance(learner, QueryLearner)
    return QueryScorer(learner.model.requires_grad_(False))


@pytest.mark.parametrize("name", CASES)
def test_answers_figures_and_exported_rows_are_those_of_the_cpu(name: str, gpu: torch.device) -> None:
    graph = graphs(CASES[name].config)[0]
    models = [ClientModel(1, graph, scorer(CASES[name], device)) for device in (CPU, gpu)]
    head, relation, tail = graph.entities[0], graph.relations[0], graph.entities[1]
    for ask in (
        lambda model: model.predict_tails(head, relation),
        lambda model: model.predict_heads(relation, tail),
        lambda model: model.predict_relations(head, tail),
        lambda model: model.similar_entities(head),
    ):
        here, there = (ask(model) for model in models)
        assert [one.name for one in here][:3] == [one.name for one in there][:3]
        np.testing.assert_allclose([one.score for one in here], [one.score for one in there], rtol=1e-4, atol=1e-5)
    here, there = (model.score(head, relation, tail).score for model in models)
    assert here == pytest.approx(there, rel=1e-4)
    figures = [evaluated(model).tail.metrics()["mrr"] for model in models]
    assert figures[0] == pytest.approx(figures[1], abs=1e-3)
    for here, there in zip(*(model.scorer.tables().values() for model in models), strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.skipif(bool(devices.gpus()), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    (run / "clients/1").mkdir(parents=True)
    (run / "config.toml").write_text('dataset = "nations"\nclients = 2\n')
    for module, typed in (
        (evaluate, [str(run), "--client", "1"]),
        (predict, [str(run), "--client", "1", "--similar", "usa"]),
    ):
        assert module.main([*typed, "--device", "cuda"]) == 2
        assert capsys.readouterr().err.strip().splitlines() == ["error: --device cuda: torch finds no GPU here"]
    assert fuse.make_parser().parse_args([str(run), str(run), "--out", "x"]).device == "auto"
