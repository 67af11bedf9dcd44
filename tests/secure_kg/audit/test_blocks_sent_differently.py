"""A block that needs no alignment is the same for all clients: a server that sends versions of it is found."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import refusals, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Stage
from benchmarks.cheating.two_blocks import DENSE, registered, two_block_stage
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.view.read import open_run
from secure_kg.federation.plan.messages import SharedBlock

pytestmark = pytest.mark.long

TARGET = 3


@pytest.fixture(autouse=True)
def two_blocks() -> Iterator[None]:
    with registered():
        yield


class Changes(Cheat):
    """Some clients are sent a dense block of other means than the sum's, all of them inside the clip."""

    def __init__(self, *clients: int) -> None:
        super().__init__()
        self._clients = clients

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, SharedBlock) and self.round >= TARGET and to in self._clients:
            return (structs.replace(message, rows=message.rows + np.float32(0.25)),)
        return (message,)


def audited(stage: Stage) -> Audit:
    return audit(open_run(stage.run), stage.run / "clients", stage.directory)


def evidence(found: Audit, name: str) -> list[str]:
    return [line for one in found.findings if (one.id, one.severity) == (name, "high") for line in one.evidence]


def test_one_client_with_another_block_is_found_and_adds_to_no_sum(tmp_path: Path) -> None:
    stage = two_block_stage(tmp_path, eval_every=4)
    session = stage.perform(Changes(VICTIM))
    told = evidence(audited(stage), "different-global-models")
    assert told
    assert all(line.startswith(f"rows/{DENSE} ") for line in told)
    assert any(f"client {VICTIM} got" in line for line in told)
    assert refusals(stage)
    assert total_of(sums_read(stage, session), "rows", TARGET - 1) is not None
    assert total_of(sums_read(stage, session), "rows", TARGET) is None


def test_the_same_lie_to_all_is_no_difference_and_is_found_as_a_lie(tmp_path: Path) -> None:
    stage = two_block_stage(tmp_path, eval_every=4)
    stage.perform(Changes(*range(1, CLIENTS + 1)))
    found = audited(stage)
    assert not evidence(found, "different-global-models")
    assert any(f"rows/{DENSE}" in line for line in evidence(found, "false-totals"))


def test_an_honest_server_of_two_blocks_is_left_in_peace(tmp_path: Path) -> None:
    stage = two_block_stage(tmp_path, eval_every=4)
    assert stage.perform(Cheat()).outcome is not None
    assert [one.id for one in audited(stage).findings if one.severity == "high"] == []
