"""A client that fails names none of its files to the server, and all of them on its own console."""

from collections.abc import Callable
from pathlib import Path

import pytest

from protocols.foundation.errors import PeerFailed, PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.federation.client.reasons import OWN_DATA, OWN_FAULT, OWN_FILES, for_own_console, for_server
from secure_kg.federation.client.site import OwnSite
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import DataError, InternalError, SettingsError, TrainingDiverged, UserError
from secure_kg.runs.run_folder import RunFolder
from tests.support.federation_in_threads import nations, small_config

NAME = "hiv-positive-ward3"


def ended(tmp_path: Path, config: RunConfig, clients: int) -> tuple[BaseException | None, list[BaseException | None]]:
    """The errors of the server and of the clients of a whole job with folders of their own."""
    folder = RunFolder.create(tmp_path / "run", config)

    def part(number: int) -> Callable[[Transport], Participation]:
        out = tmp_path / f"of-{number}" / "run"
        site = OwnSite(config=config, number=number, clients=clients, runs=tmp_path, out=out, resume=False)
        return lambda transport: take_part(config, transport, clients, site)

    job = run_in_process(
        lambda transport: FederationServer(config, transport, folder, lambda line: None).run(),
        {PartyId(number): part(number) for number in range(1, clients + 1)},
        seconds=60,
    )
    return job.server.error, [one.error for one in job.clients.values()]


def data(tmp_path: Path) -> RunConfig:
    for number, graph in enumerate(nations(3), start=1):
        write_client_folder(client_folder(tmp_path / "data", number), graph)
    return small_config(client_data=str(tmp_path / "data"), clients=3)


def test_the_name_of_a_damaged_file_stays_with_its_client(tmp_path: Path) -> None:
    config, own = data(tmp_path), client_folder(tmp_path / "data", 2)
    for path in own.iterdir():
        path.unlink()
    (own / f"{NAME}.nt").write_text("<a> <b> <c> .\nthis is no triple\n")
    server, clients = ended(tmp_path, config, 3)
    assert isinstance(server, PeerFailed)
    assert str(server) == f"client 2: {OWN_DATA}"
    assert isinstance(clients[1], DataError)
    assert NAME in str(clients[1])
    assert not any(NAME in str(one) for one in (clients[0], clients[2]))
    line = for_own_console(clients[1], config, 2)
    assert line is not None
    assert line.startswith("client 2: ")
    assert NAME in line


def test_a_folder_of_a_client_is_not_told_either(tmp_path: Path) -> None:
    config, used = data(tmp_path), tmp_path / "of-3" / "run" / "clients" / "3"
    used.mkdir(parents=True)
    (used / f"{NAME}.safetensors").write_bytes(b"")
    server, clients = ended(tmp_path, config, 3)
    assert str(server) == f"client 3: {OWN_FILES}"
    assert "of-3" in str(clients[2])


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (UserError(f"/home/{NAME}: x"), OWN_FILES),
        (InternalError(f"internal error (KeyError); the details are in /{NAME}/error.log"), OWN_FAULT),
        (SettingsError("other settings"), "other settings"),
        (TrainingDiverged("not finite"), "not finite"),
        (PeerMisbehaved("the server lies"), "the server lies"),
    ],
)
def test_only_texts_without_files_are_told(problem: Exception, told: str) -> None:
    config = small_config(client_data="data")
    assert for_server(problem, config) == told
    assert (for_own_console(problem, config, 1) is None) == (told == str(problem))


def test_a_data_set_that_all_name_is_told_by_its_name() -> None:
    problem = DataError("no-such-set: no such folder")
    assert for_server(problem, small_config()) == str(problem)
    assert for_server(problem, small_config(client_data="data")) == OWN_DATA
