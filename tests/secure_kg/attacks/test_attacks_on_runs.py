"""The attacks on what real servers saw: a plain run falls, secure ones stand."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from secure_kg.attacks.reconstruct import reconstruct_target
from secure_kg.attacks.result import AttackResult
from secure_kg.attacks.single_holder import OpenedRows, lone_rows, score_lone_rows
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import ServerView, read_view
from secure_kg.audit.view.read import AuditedRun, open_run
from secure_kg.foundation.errors import UserError
from tests.support.federation_in_threads import nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS = 3


class Attacked:
    def __init__(self, path: Path, strategy: str, aggregation: str, alignment: str) -> None:
        config = small_config(
            strategy=strategy, aggregation=aggregation, alignment=alignment, clients=CLIENTS, rounds=3, eval_every=3,
            transcript=True,
        )  # fmt: skip
        graphs = nations(CLIENTS)
        run_federation(config, graphs, path).done()
        self.run: AuditedRun = open_run(path)
        self.view: ServerView = read_view(self.run.config, chain.from_iterable(self.run.recordings))
        shared = self.view.shared
        assert shared is not None
        self.truth = {k: Truth.read(path, k, graph, shared) for k, graph in enumerate(graphs, start=1)}

    def results(self) -> dict[str, AttackResult]:
        return {one.id: one for one in reconstruct_target(self.view, self.truth[1], self.truth[2], seed=0)}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    return Attacked(tmp_path_factory.mktemp("plain") / "run", "fede", "plain", "plain")


@pytest.fixture(scope="module", params=["secagg", "secret"])
def secure(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    return Attacked(tmp_path_factory.mktemp("secure") / "run", "fede", request.param, "psu")


@pytest.fixture(scope="module")
def plain_fedr(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    return Attacked(tmp_path_factory.mktemp("fedr") / "run", "fedr", "plain", "plain")


def test_a_plain_upload_is_read_as_it_was_sent(plain: Attacked) -> None:
    assert plain.view.round == 3
    assert sorted(plain.view.uploads) == [1, 2, 3]
    for client, upload in plain.view.uploads.items():
        own = plain.truth[client].positions
        np.testing.assert_array_equal(np.sort(own), upload.positions)
        assert not upload.masked
        assert plain.view.names[client] == plain.truth[client].graph.entities
    together = OpenedRows.of_uploads(plain.view.uploads.values())
    # The last mean is where every client went on from, and nobody trained after it.
    mean = together.sums / together.counts[:, None]
    at = plain.truth[2].positions
    np.testing.assert_allclose(mean[at], plain.truth[2].entities, atol=1e-5)


def test_a_round_can_be_chosen(plain: Attacked) -> None:
    view = read_view(plain.run.config, chain.from_iterable(plain.run.recordings), round=2)
    assert (view.round, sorted(view.uploads)) == (2, [1, 2, 3])
    assert read_view(plain.run.config, chain.from_iterable(plain.run.recordings), round=9).uploads == {}


def test_the_last_complete_round_is_taken(plain: Attacked) -> None:
    messages = (
        one
        for one in chain.from_iterable(plain.run.recordings)
        if not (one.purpose == "rows" and one.round == 3 and one.peer == 2)
    )
    assert read_view(plain.run.config, messages).round == 2


def test_fede_in_clear_falls(plain: Attacked) -> None:
    results = plain.results()
    whole = results["reconstruct-fede-100"]
    assert whole.succeeded
    assert whole.scores["ERR"] == 1.0
    assert whole.scores["TRR"] > 3 * whole.chance["TRR"]
    assert results["holdings-in-view"].scores["ERR"] == 1.0
    assert results["holdings-in-view"].succeeded


def test_masked_uploads_stand(secure: Attacked) -> None:
    assert secure.view.masked
    assert secure.view.names == {}
    assert all(len(upload.positions) == len(upload.rows) for upload in secure.view.uploads.values())
    results = secure.results()
    # 14 names: a guess has 7 of them right in 1 of 60,000 runs.
    assert results["reconstruct-fede-100"].scores["ERR"] <= 0.5
    assert results["reconstruct-fede-100"].scores["TRR"] < 0.05
    assert results["reconstruct-fede-open-pairs"].scores["precision"] < 0.1
    assert not results["holdings-by-position"].succeeded
    assert "holdings-in-view" not in results


def test_relation_rows_in_clear_name_relations_and_hardly_a_triple(plain_fedr: Attacked) -> None:
    results = plain_fedr.results()
    assert results["relations-by-similarity"].succeeded
    assert results["holdings-in-view"].succeeded  # plain alignment: the names were sent
    assert results["relations-by-similarity"].scores["relations"] > 0.9
    whole = results["reconstruct-fedr-100"]
    assert whole.scores["RRR"] > 0.9
    assert whole.scores["ERR"] == whole.chance["ERR"]  # nothing the server saw


def test_sums_of_a_run_show_no_row_of_one_holder(plain: Attacked) -> None:
    together = OpenedRows.of_uploads(plain.view.uploads.values())
    assert not score_lone_rows(lone_rows([together]), plain.view.uploads).succeeded


def test_truth_of_another_run_is_refused(plain: Attacked, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="never aligned"):
        Truth.read(tmp_path, 1, plain.truth[1].graph, "entity")
    with pytest.raises(UserError):
        Truth.read(plain.run.path, 1, plain.truth[1].graph, "relation")
