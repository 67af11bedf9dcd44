"""How costs grow: the byte model against real messages, the model against what it was not fitted to, the document."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.byte_counts import Uploads
from benchmarks.scale import command, measuring, paper
from benchmarks.scale.measuring import FITTED, HELD_OUT, HOLDERS, Point, Size
from benchmarks.scale.model import fit, work
from protocols.costs.byte_counts import MaskedSum, private_union
from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.simulation import PURPOSE


def parties(clients: int) -> frozenset[PartyId]:
    return frozenset(PartyId(number) for number in range(1, clients + 1))


@pytest.mark.parametrize(("clients", "dropped"), [(2, 0), (5, 0), (8, 2)])
def test_bytes_of_a_sum_are_those_that_travel(clients: int, dropped: int) -> None:
    point = measuring._sum(Size("sum", clients, 30, 4, dropped=dropped))
    gone = frozenset(PartyId(number) for number in range(clients - dropped + 1, clients + 1))
    of_steps: dict[str, list[int]] = {}
    for party in parties(clients):
        counted = MaskedSum(PURPOSE, 120, 4, party, parties(clients) - {party}, gone).bytes_up()
        for step, size in counted.items():
            if party not in gone or step.startswith(("advertise", "share")):
                of_steps.setdefault(step, []).append(size)
    assert point.client_bytes_up == round(sum(np.mean(sizes) for sizes in of_steps.values()))


def test_bytes_of_a_secret_round_are_those_that_travel() -> None:
    point = measuring._secret_round(Size("secret round", 4, 20, 8))
    counted = Uploads("secret", 4, 1, 20, 8, min_holders=HOLDERS).round()
    assert point.client_bytes_up == sum(counted.values())


def test_bytes_on_paper_are_those_of_the_closed_form() -> None:
    assert paper.rows_up(5) == sum(Uploads("secagg", 5, 1, paper.ROWS, paper.DIM).round(counting=False).values())
    assert paper.union_up(5) == sum(
        private_union(paper.ROWS, PartyId(1), parties(5) - {PartyId(1)}).bytes_up().values()
    )
    # What a run asks for without the option grows with the square of the corrupt clients.
    assert paper.count_up(100, None) > 100 * paper.count_up(100, 2)
    assert paper.question_up(12) is not None
    assert paper.question_up(13) is None


def test_the_model_finds_constants_that_there_are_and_is_checked_on_others() -> None:
    def made(size: Size) -> Point:
        client = float(np.dot([1e-3, 2e-5, 3e-9, 4e-10], work("client_seconds", size, size.clients - 1)))
        server = float(np.dot([1e-3, 1e-5, 1e-6, 9e-5, 1e-9, 4e-10], work("server_seconds", size, size.clients - 1)))
        return Point(size, size.clients - 1, client, server, 1, 5.0 + size.entries * 1e-5)

    sums = [made(size) for size in FITTED if size.kind == "sum"]
    others = [made(size) for size in HELD_OUT if size.kind == "sum"]
    fits = {one.quantity: one for one in fit(sums, others)}
    assert fits["client_seconds"].largest_error < 1e-6
    assert fits["server_seconds"].largest_error < 1e-6
    wrong = [Point(one.size, one.neighbours, one.client_seconds * 2, one.server_seconds, 1, 1.0) for one in others]
    assert fit(sums, wrong)[0].usual_error == pytest.approx(0.5)


def test_points_that_check_the_model_are_none_that_it_was_fitted_to() -> None:
    assert not {*FITTED} & {*HELD_OUT}
    assert max(size.clients for size in FITTED) == 16
    assert {size.kind for size in FITTED} == {size.kind for size in HELD_OUT} == {*measuring.KINDS}


def test_the_command_writes_document_figure_and_figures(tmp_path: Path) -> None:
    written = {name: tmp_path / name for name in ("scale.md", "scale.svg", "scale.json")}
    options = ["--tiny", "--repeat", "1", "--markdown", str(written["scale.md"])]
    assert command.main([*options, "--figure", str(written["scale.svg"]), "--json", str(written["scale.json"])]) == 0
    text = written["scale.md"].read_text()
    assert "## A thousand clients, on paper" in text
    assert "| 1,000 |" in text
    assert written["scale.svg"].read_text().startswith("<svg")
    report = json.loads(written["scale.json"].read_text())
    assert [one["clients"] for one in report["paper"]] == list(paper.CLIENTS)
    assert all(one["client_seconds"] > 0 for part in ("fitted", "held_out") for one in report[part])


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--repeat", "0"]) == 2
    assert capsys.readouterr().err.strip() == "error: --repeat must be at least 1"
