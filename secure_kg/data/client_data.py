"""A client's own graph, as a job's settings name it: from the client's own folder, or its part of a public data set."""

from pathlib import Path
from typing import Protocol

from secure_kg.data.folders import client_folder, load_client_folder
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import By, partition, require_client
from secure_kg.data.readers.interface import Literals, Reading
from secure_kg.data.soundness import check_split
from secure_kg.data.sources import FederatedSource, load_source
from secure_kg.data.triples import part_file, shown
from secure_kg.foundation.errors import UserError


class DataSettings(Protocol):
    """The settings of a run that say where its data are."""

    @property
    def dataset(self) -> str: ...

    @property
    def by(self) -> By: ...

    @property
    def client_data(self) -> str | None: ...

    @property
    def seed(self) -> int: ...

    @property
    def literals(self) -> Literals: ...

    @property
    def columns(self) -> str: ...

    @property
    def allow_leaky_split(self) -> bool: ...


def load_graph(settings: DataSettings, clients: int, client: int) -> ClientGraph:
    """The client's own folder, or its part of a public data set; a damaged split only if the settings allow it."""
    if settings.client_data is not None:
        reading = Reading(settings.literals, settings.columns)
        return load_client_folder(
            settings.client_data, client, allow_leaky=settings.allow_leaky_split, seed=settings.seed, reading=reading
        )
    require_client(client, clients)
    return _divided(settings, clients)[client - 1]


def _divided(settings: DataSettings, clients: int) -> list[ClientGraph]:
    """The parts of a public data set. All of it is checked, so all clients refuse a damaged split in the same words."""
    reading = Reading(settings.literals, settings.columns)
    source = load_source(settings.dataset, reading, graphs=settings.by == "graph")
    graphs = partition(source, clients, settings.by, settings.seed)
    check_split(graphs, shown(settings.dataset), allow_leaky=settings.allow_leaky_split)
    return graphs


def load_graphs(settings: DataSettings, clients: int | None, usual: int) -> list[ClientGraph]:
    """The graphs that clients 1, 2, ... of a federation would read or derive, each in its own way.

    `clients`: None for all there are. `usual`: how many parts a data set is divided into that has no number of its own.
    """
    known = number_of_clients(settings, usual)
    if settings.client_data is not None and known == 1 and clients not in (None, 1):
        raise UserError(f"--client-data {settings.client_data}: holds the data of one client, not of {clients}")
    number = clients if clients is not None else known
    if settings.client_data is None:  # one reading serves all of them
        return _divided(settings, number)
    return [load_graph(settings, number, client) for client in range(1, number + 1)]


def number_of_clients(settings: DataSettings, usual: int) -> int:
    """How many clients there are data of; `usual` where the data can be divided among any number."""
    if settings.client_data is not None:
        root, found = Path(settings.client_data), 1
        if root.is_dir() and part_file(root, "train") is None:
            while client_folder(root, found + 1).is_dir():
                found += 1
        return found
    if Path(settings.dataset).suffix.lower() == ".npz" or settings.by == "graph":
        reading = Reading(settings.literals, settings.columns)
        source = load_source(settings.dataset, reading, graphs=settings.by == "graph")
        return len(source.clients) if isinstance(source, FederatedSource) else len(source.named_graphs or [()])
    return 1 if settings.by == "whole" else usual  # whole: one graph, nothing to pool
