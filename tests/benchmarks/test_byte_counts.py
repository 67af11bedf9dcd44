"""Formula, documentation and reality: bytes counted in closed form are those that travel, to the byte."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks.byte_counts import Uploads
from benchmarks.sums_alone import sums_alone
from protocols.costs import byte_counts
from protocols.foundation import frame_sizes, wire
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys, SurvivorSignature, UnmaskShares
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from tests.support.federation_in_threads import nations, run_federation, small_config

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
EDGES = [0, 1, 15, 16, 31, 32, 127, 128, 255, 256, 65535, 65536]


@pytest.mark.parametrize("value", [*EDGES, 2**32 - 1, 2**32, 2**63])
def test_sizes_of_numbers(value: int) -> None:
    assert frame_sizes.number_bytes(value) == len(msgspec.msgpack.encode(value))


@pytest.mark.parametrize("length", EDGES)
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (bytes, frame_sizes.binary_bytes),
        (lambda length: "x" * length, lambda length: frame_sizes.text_bytes("x" * length)),
        (lambda length: [0] * length, lambda length: frame_sizes.list_head_bytes(length) + length),
    ],
)
def test_sizes_of_bytes_texts_and_lists(make: Callable[[int], Any], count: Callable[[int], int], length: int) -> None:
    assert count(length) == len(msgspec.msgpack.encode(make(length)))


@pytest.mark.parametrize("dtype", ["<u4", "<u8"])
@pytest.mark.parametrize("entries", [0, 1, 2, 5, 30, 31, 61, 62, 8190, 8191, 16381, 16382, 100_000])
def test_sizes_of_arrays(dtype: str, entries: int) -> None:
    vector = np.zeros(entries, dtype=dtype)
    frame = wire.encode(ClearInput("rows", vector), SessionId(bytes(16)), RoundId(1))
    assert byte_counts.clear_input("rows", entries, vector.itemsize) == {"input/rows": len(frame)}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("clients", [2, 16, 17, 130, 300])
def test_a_masked_sum_of_any_number_of_clients(clients: int, signed: bool) -> None:
    """Parties beyond 127 and 255 take two and three bytes, maps of more than 15 entries a longer head."""
    party, others = PartyId(1), frozenset(PartyId(number) for number in range(2, clients + 1))
    dropped = frozenset(itertools.islice(others, clients // 3))
    signature = bytes(64 if signed else 0)
    messages = {
        "advertise keys": AdvertiseKeys("rows", bytes(32), b"", signature),
        "share keys": ShareKeys("rows", {int(peer): bytes(108) for peer in others}, bytes(32), b"", signature),
        "masked input": MaskedInput("rows", np.zeros(10, dtype="<u4"), bytes(32)),
        "unmasking": UnmaskShares(
            "rows",
            {int(peer): bytes(40) for peer in dropped},
            {int(peer): bytes(40) for peer in {*others, party} - dropped},
        ),
    }
    if signed:
        messages["consistency check"] = SurvivorSignature("rows", signature)
    sent = {
        f"{step}/rows": len(wire.encode(message, SessionId(bytes(16)), RoundId(1)))
        for step, message in messages.items()
    }
    assert byte_counts.MaskedSum("rows", 10, 4, party, others, dropped, signed).bytes_up() == sent


def sent_by_phase(transport: Transport) -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for key, count in transport.traffic.counts.items():
        if key.direction == "sent":
            counts[int(key.round)][key.phase] += count.bytes
    return counts


@pytest.mark.parametrize("aggregation", ["plain", "secagg", "secret"])
@pytest.mark.parametrize(
    ("clients", "dim", "ring_bits", "strategy"), [(3, 8, 32, "fedr"), (4, 5, 64, "fede"), (3, 8, 17, "fedr")]
)
def test_a_whole_run_sends_what_is_counted(
    aggregation: Any, clients: int, dim: int, ring_bits: Any, strategy: str, tmp_path: Path
) -> None:
    ends: dict[int, Transport] = {}

    def transport_of(network: InProcessNetwork, number: int) -> Transport:
        ends[number] = network.endpoint(PartyId(number))
        return ends[number]

    config = small_config(
        aggregation=aggregation,
        alignment="plain" if aggregation == "plain" else "psu",
        strategy=strategy,
        clients=clients,
        ring_bits=ring_bits,
        rounds=2,
        eval_every=2,
        checkpoint_every=0,
        union_bound=100,
        training=TrainingConfig(dim=dim, negatives=4, batch_size=256, local_epochs=1),
    )
    graphs = nations(clients)
    outcome = run_federation(config, graphs, tmp_path / "run", transport_of=transport_of).done()
    empty = frame_sizes.frame_bytes()
    for number, graph in enumerate(graphs, start=1):
        uploads = Uploads(aggregation, clients, number, outcome.union_size, dim, ring_bits)
        names = graph.relations if strategy == "fedr" else graph.entities
        sent = sent_by_phase(ends[number])
        # Hello with its digest; Ready, Aligned and Done.
        hello = frame_sizes.frame_bytes(frame_sizes.binary_bytes(32))
        around = {"setup": hello + 3 * empty}
        verdict = uploads.evaluation(1)
        around["setup"] += verdict.pop("verdict", 0)  # sent outside of any labelled step
        assert sent[0] == around | uploads.setup(names, 100)
        assert sent[1] == uploads.round()
        assert sent[2] == uploads.round(counting=False) | verdict
        assert sent[3] == uploads.metrics("test")


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("aggregation", ["plain", "secagg", "secret"])
@pytest.mark.parametrize(("clients", "rows", "dim"), [(2, 1, 1), (5, 300, 7), (18, 40, 3)])
def test_sums_alone_send_what_is_counted(aggregation: Any, clients: int, rows: int, dim: int, ring_bits: Any) -> None:
    config = RunConfig(strategy="fede", aggregation=aggregation, clients=clients, ring_bits=ring_bits)
    done = sums_alone(config, clients, rows, dim, repeat=1)
    for number in range(1, clients + 1):
        sent = done.sent[number].total("sent", round_id=RoundId(2)).bytes
        assert sent == sum(Uploads(aggregation, clients, number, rows, dim, ring_bits).round().values())
    assert len(done.client_cpu_seconds) == clients


@pytest.mark.parametrize("aggregation", ["plain", "secagg", "secret"])
def test_the_documentation_has_these_counts(aggregation: Any) -> None:
    """The tables of docs/overhead.md: FB15k-237's entities, dimension 128, 5 clients; and their growth."""
    text = (ROOT / "docs" / "overhead.md").read_text(encoding="utf-8")
    for step, size in Uploads(aggregation, 5, 1, 14541, 128).round().items():
        assert f"| `{step}` | {size:,} |" in text
    for clients in (5, 10, 20):
        total = sum(Uploads(aggregation, clients, 1, 14541, 128).round().values())
        plain = sum(Uploads("plain", clients, 1, 14541, 128).round().values())
        assert f"| {clients} | {aggregation} | {total:,} | {total / plain:.5f} |" in text


@pytest.mark.parametrize("clients", [2, 5, 15, 16, 20, 127])
@pytest.mark.parametrize(("rows", "dim"), [(130, 128), (14541, 128), (40943, 256)])
def test_the_documented_formula_is_the_count(clients: int, rows: int, dim: int) -> None:
    """The polynomial of docs/overhead.md, for up to 127 clients and vectors of 64 kB and more."""
    text = (ROOT / "docs" / "overhead.md").read_text(encoding="utf-8")
    k, w, rows_of_table = clients - 1, 4, rows * (dim + 1)
    longer = 0 if k < 15 else 2 if k == 15 else 4  # heads of maps with more than 15 entries
    plain_rows, masked_rows = 55 + w * rows_of_table, 357 + 154 * k + longer + w * rows_of_table
    assert "55 + w m (d + 1)" in text
    assert "357 + 154 k + w m (d + 1)" in text
    assert plain_rows == sum(byte_counts.clear_input("rows", rows_of_table, w).values())
    neighbours = Uploads("secagg", clients, 1, rows, dim).neighbours
    masked = byte_counts.MaskedSum("rows", rows_of_table, w, PartyId(1), neighbours, guarded=True).bytes_up()
    assert masked_rows == sum(masked.values())
    assert "58 + 4 m" in text
    assert "345 + 154 k + 8 m (h − 1)²" in text
    many = 4 * rows  # rows enough for a count of 64 kB
    if 4 * many >= 1 << 16:
        assert 58 + 4 * many == sum(byte_counts.clear_count(many).values())
        for least in (2, 3, 5):
            counted = byte_counts.secret_count(many, PartyId(1), neighbours, least).bytes_up()
            assert 345 + 154 * k + longer + 8 * many * (least - 1) ** 2 == sum(counted.values())


@pytest.mark.parametrize("clients", [2, 5, 15])
def test_the_documented_sizes_of_an_evaluation_are_the_counts(clients: int) -> None:
    text = " ".join((ROOT / "docs" / "overhead.md").read_text(encoding="utf-8").split())
    assert "181 bytes in clear and 486 + 154 k masked" in text
    assert "807 + 154 k in all, and 35 for a verdict" in text
    k = clients - 1
    sizes = {"plain": 181, "secagg": 486 + 154 * k, "secret": 807 + 154 * k + 35}
    for aggregation, size in sizes.items():
        uploads = Uploads(aggregation, clients, 1, 100, 8)  # type: ignore[arg-type]
        assert sum(uploads.evaluation(1).values()) == size


@pytest.mark.parametrize(("rows", "more"), [(5, 161), (16, 160), (455, 160), (456, 0)])
def test_a_secret_sum_of_few_rows_has_a_check(rows: int, more: int) -> None:
    """Rows of width 8: 455 of them have 4095 entries, 456 have more than 4096."""
    secret, masked = (sum(Uploads(kind, 5, 1, rows, 8).round().values()) for kind in ("secret", "secagg"))  # type: ignore[arg-type]
    assert secret - masked == more
