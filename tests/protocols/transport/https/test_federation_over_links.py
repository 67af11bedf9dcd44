"""A whole federation over links, some of which are cut all the time, ends as in one process, to the last bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.links.faults import Faults
from benchmarks.links.proxy import FaultProxy
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from tests.support.federation_in_threads import nations, relation_rows, run_federation, small_config
from tests.support.links import Provisioned, links

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "changes", [{"aggregation": "secagg", "alignment": "psu"}, {"aggregation": "secret"}], ids=["secagg", "secret"]
)
def test_a_federation_over_links_ends_as_in_one_process(
    provisioned: Provisioned, tmp_path: Path, changes: dict[str, Any]
) -> None:
    config, graphs = small_config(**changes), nations(3)
    alone = run_federation(config, graphs, tmp_path / "alone")
    with links(provisioned) as made, FaultProxy(("127.0.0.1", made.port)) as proxy:
        proxy.faults = Faults(break_at_pieces=frozenset(range(40, 2000, 61)))

        def client(network: InProcessNetwork, number: int) -> Transport:
            through = {"url": f"https://127.0.0.1:{proxy.port}"} if number != 2 else {"mode": "poll"}
            return made.client(number, **through)

        def server() -> Transport:
            made.wait(1, 2, 3)
            return made.server.transport()

        together = run_federation(config, graphs, tmp_path / "links", transport_of=client, server_transport=server)
        assert proxy.connections > 2
    expected, found = alone.done(), together.done()
    assert (found.test, found.valid_mrr, found.rounds) == (expected.test, expected.valid_mrr, expected.rounds)
    assert (found.bytes_up, found.bytes_down) == (expected.bytes_up, expected.bytes_down)
    for number, rows in relation_rows(alone).items():
        assert np.array_equal(rows, relation_rows(together)[number])


@pytest.mark.slow
@pytest.mark.parametrize("share", range(8))
def test_a_cut_at_any_piece_of_a_run_of_one_round_changes_nothing(
    provisioned: Provisioned, tmp_path: Path, share: int
) -> None:
    """Set-up, alignment, a round, its evaluation and the results. Each case has every eighth piece."""
    config, graphs = small_config(aggregation="secagg", alignment="psu", rounds=1, eval_every=1), nations(3)
    expected = run_federation(config, graphs, tmp_path / "alone").done()
    pieces, place = 8, 1 + share
    while place <= pieces:
        with links(provisioned) as made, FaultProxy(("127.0.0.1", made.port)) as proxy:
            proxy.faults = Faults(break_at_pieces=frozenset({place}))

            def client(network: InProcessNetwork, number: int, made: Any = made, port: int = proxy.port) -> Transport:
                return made.client(number, url=f"https://127.0.0.1:{port}")

            def server(made: Any = made) -> Transport:
                made.wait(1, 2, 3)
                return made.server.transport()

            out = tmp_path / f"cut-{place}"
            found = run_federation(config, graphs, out, transport_of=client, server_transport=server).done()
            assert (found.test, found.bytes_up) == (expected.test, expected.bytes_up), place
            pieces = proxy.pieces
        place += 8
    assert pieces > 100
