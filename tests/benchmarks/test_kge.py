"""The benchmark next to PyKEEN: that both sides are asked the same question, a small run, and mistakes."""

import gzip
import json
from pathlib import Path

import pytest
import torch

from benchmarks import kge, pykeen_peer  # when tests are collected: PyKEEN cannot be loaded after CrypTen
from secure_kg.data.catalogue import bundled_files
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.loss import self_adversarial_loss

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """As the benchmark itself; on tensors this small, more threads only wait for each other."""
    torch.set_num_threads(1)


def config_of(model: str) -> TrainingConfig:
    return TrainingConfig(model=model, dim=8, negatives=16, batch_size=256, lr=1e-2, local_epochs=1, corrupt="both")


def trainer_of(model: str) -> KgeLearner:
    return KgeLearner(kge.published_split("nations"), config_of(model), torch.device("cpu"), 0, 1)


def test_every_model_of_pykeen_is_compared() -> None:
    assert set(kge.COMPARABLE) <= set(pykeen_peer.INTERACTIONS)
    assert {"TransE", "RotatE", "DistMult", "ComplEx"} <= set(kge.COMPARABLE)


@pytest.mark.parametrize("model", kge.COMPARABLE)
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_loss_is_the_same_function_up_to_one_half(model: str, temperature: float) -> None:
    """In values and gradients, with and without false negatives. Ours has the margin in the score already."""
    config = TrainingConfig(model=model, margin=7.0, temperature=temperature)
    draws = torch.Generator().manual_seed(1)
    scores = 5 * torch.randn(6, 11, generator=draws)
    false_negative = torch.rand(6, 10, generator=draws) < 0.3
    margin = config.margin if model in pykeen_peer.DISTANCES else 0.0
    for mask in (None, false_negative):
        theirs, ours = (scores.clone().requires_grad_() for _ in range(2))
        their_negatives = theirs[:, 1:] if mask is None else theirs[:, 1:][~mask]
        their_loss = pykeen_peer.same_loss(config).process_slcwa_scores(
            theirs[:, :1], their_negatives, batch_filter=None if mask is None else ~mask
        )
        no_mask = torch.zeros(6, 10, dtype=torch.bool)
        our_loss = self_adversarial_loss(
            margin + ours[:, 0], margin + ours[:, 1:], no_mask if mask is None else mask, temperature
        )
        torch.testing.assert_close(2 * their_loss, our_loss)
        their_loss.backward()  # type: ignore[no-untyped-call]
        our_loss.backward()  # type: ignore[no-untyped-call]
        assert theirs.grad is not None
        torch.testing.assert_close(2 * theirs.grad, ours.grad)


@pytest.mark.parametrize("model", kge.COMPARABLE)
def test_the_same_rows_get_the_same_mrr(model: str) -> None:
    """Both evaluators measure the same thing, for first rows and for trained ones; PyKEEN adds up in 32 bits."""
    trainer = trainer_of(model)
    before = pykeen_peer.PyKeenPeer(trainer, seed=0).evaluate(trainer.graph.test)
    assert before == pytest.approx(trainer.rank("test", "both").metrics()["mrr"], abs=1e-6)
    for epoch in range(10):
        trainer.train(epoch)
    after = pykeen_peer.PyKeenPeer(trainer, seed=0).evaluate(trainer.graph.test)
    assert after == pytest.approx(trainer.rank("test", "both").metrics()["mrr"], abs=1e-6)
    assert abs(after - before) > 1e-3


@pytest.mark.parametrize("model", kge.COMPARABLE)
def test_scores_differ_by_the_margin_only(model: str) -> None:
    trainer = trainer_of(model)
    peer = pykeen_peer.PyKeenPeer(trainer, seed=0)
    triples = torch.from_numpy(trainer.graph.test)
    entity, relation = (torch.from_numpy(trainer.export_block(table)) for table in ("entity", "relation"))
    ours = trainer.model.score(entity[triples[:, 0]], relation[triples[:, 1]], entity[triples[:, 2]])
    theirs = peer.model.score_hrt(triples)[:, 0] + pykeen_peer.loss_margin(trainer.config)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("filter_negatives", [False, True])
def test_pykeen_goes_on_from_epoch_to_epoch(filter_negatives: bool) -> None:
    """Asked for one epoch at a time, it keeps its rows and the state of Adam, and it starts from our rows."""
    trainer = trainer_of("TransE")
    peer = pykeen_peer.PyKeenPeer(trainer, seed=0, filter_negatives=filter_negatives)
    batches = -(-len(trainer.graph.train) // 256)
    for epoch in range(1, 4):
        peer.train_epoch()
        steps = {int(state["step"]) for state in peer._loop.optimizer.state.values()}
        assert steps == {epoch * batches}
    assert len(peer._loop.losses_per_epochs) == 3
    assert peer._loop.losses_per_epochs[2] < peer._loop.losses_per_epochs[0]
    moved = (peer.model.entity_representations[0]() - torch.from_numpy(trainer.export_block("entity"))).abs().max()
    assert 0 < moved < 3 * batches * 1e-2 * 1.5


def test_batches_that_would_not_fit_are_divided() -> None:
    graph = kge.published_split("nations")
    assert pykeen_peer.sub_batch(TrainingConfig(model="TransE")) == 512
    assert pykeen_peer.sub_batch(TrainingConfig(model="ComplEx", dim=2**14)) == 16
    assert pykeen_peer.eval_batches(graph, TrainingConfig(model="TransE")) == (32, 128, 512)
    assert pykeen_peer.eval_batches(graph, TrainingConfig(model="ComplEx", dim=2**16)) == (32, 128)


@pytest.mark.parametrize("model", ["transe", "RotatE"])
def test_writes_the_figures_and_shows_a_table(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "nations", "--model", model, "--dim", "8", "--epochs", "2", "--negatives", "8"]
    assert kge.main([*options, "--eval-limit", "50", "--json", str(tmp_path / "deep" / "kge.json")]) == 0
    report = json.loads((tmp_path / "deep" / "kge.json").read_text())
    for side in ("ours", "pykeen"):
        assert report[side]["train_triples_per_s"] > 0
        assert report[side]["eval_triples_per_s"] > 0
        assert 0 < report[side]["mrr"] <= 1
        assert [timing["triples"] for timing in report[side]["training"]] == [1592, 1592]
        assert all(timing["cpu_seconds"] > 0 for timing in report[side]["training"])
    assert [timing["triples"] for timing in report["ours"]["ranking"]] == [201, 201, 201]
    assert [timing["triples"] for timing in report["pykeen"]["ranking"]] == [201, 50, 50]
    for what, unit in (("train", ""), ("eval", ""), ("train", "cpu_"), ("eval", "cpu_")):
        name = f"{what}_triples_per_{unit}s"
        assert report[f"{what}_{unit}speedup"] == pytest.approx(report["ours"][name] / report["pykeen"][name])
    sizes = ("entities", "relations", "train_triples", "test_triples", "evaluated_triples")
    assert tuple(report[name] for name in sizes) == (14, 55, 1592, 201, 201)
    settings = ("dataset", "model", "dim", "negatives", "batch", "epochs", "lr", "margin", "threads", "sides")
    assert tuple(report[name] for name in settings) == (
        *("nations", {"transe": "TransE"}.get(model, model), 8, 8, 512, 2, 0.001, 10.0, 1, "both"),
    )
    assert (report["repeats"], report["seed"]) == (3, 0)
    assert set(report["versions"]) == {"torch", "pykeen"}
    shown = capsys.readouterr()
    assert "epoch 2/2" in shown.out
    assert "ranking 3/3" in shown.out
    assert "test MRR" in shown.out
    assert shown.err == ""


def test_a_folder_and_json_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The parts stay as published, even with a test entity that nothing trains."""
    folder = tmp_path / "somewhere" / "mygraph"
    folder.mkdir(parents=True)
    train, valid, test = (path.read_text().strip() for path in bundled_files("nations"))
    (folder / "train.tsv.gz").write_bytes(gzip.compress(train.encode()))
    (folder / "valid.txt").write_text(valid)
    (folder / "test.tsv").write_text(f"{test}\nusa\tembassy\tatlantis\n")
    options = ["--dataset", str(folder), "--model", "distmult", "--dim", "4", "--epochs", "1", "--repeats", "1"]
    assert kge.main([*options, "--negatives", "4", "--json", "-"]) == 0
    output = capsys.readouterr()
    report = json.loads(output.out)
    assert report["dataset"] == "mygraph"
    assert (report["entities"], report["train_triples"], report["test_triples"]) == (15, 1592, 202)
    assert [timing["triples"] for timing in report["pykeen"]["ranking"]] == [202]
    assert str(tmp_path) not in output.out


def test_the_help_teaches_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert kge.main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "example: python -m benchmarks.kge --dataset umls" in shown
    assert "each ranked at both ends" in shown


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--dataset", "no/such/folder"], "no/such/folder"),
        (["--dataset", ""], "(empty)"),
        (["--dataset", "."], "all needed"),
        (["--model", "transx"], "transx"),
        (["--epochs", "0"], "--epochs"),
        (["--epochs", "x"], "--epochs"),
        (["--repeats", "0"], "--repeats"),
        (["--threads", "0"], "--threads"),
        (["--eval-limit", "-1"], "--eval-limit"),
        (["--seed", "-1"], "--seed"),
        (["--dim", "0"], "--dim"),
        (["--negatives", "0"], "--negatives"),
        (["--batch-size", "0"], "--batch-size"),
        (["--lr", "nan"], "--lr"),
        (["--margin", "-1"], "--margin"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_mistake_gets_one_line(options: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kge.main(options) == 2
    output = capsys.readouterr()
    assert output.out == ""
    errors = output.err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert part in errors[0]


def test_a_file_that_cannot_be_written_is_noticed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kge.main(["--dataset", "nations", "--json", str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "cannot be written" in output.err


def test_a_diverging_pykeen_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "nations", "--model", "distmult", "--dim", "4", "--lr", "1e30", "--negatives", "4"]
    assert kge.main(options) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert "a smaller --lr may help" in errors[0]
