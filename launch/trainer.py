"""A client rank's own data and trainer. Imported by client ranks only, since it brings torch."""

from secure_kg.data.folders import load_client_folder
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import load_client
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.device import pick_device
from secure_kg.learning.kge import KgeLearner


def load_graph(config: RunConfig, clients: int, client: int) -> ClientGraph:
    """The client's own folder, or its part of a public data set; a damaged split only if the settings allow it."""
    if config.client_data is not None:
        return load_client_folder(config.client_data, client, allow_leaky=config.allow_leaky_split)
    return load_client(config.dataset, clients, client, config.by, config.seed, allow_leaky=config.allow_leaky_split)


def make_trainer(config: RunConfig, graph: ClientGraph, client: int, local_rank: int) -> KgeLearner:
    return KgeLearner(graph, config.training, pick_device(local_rank, config.device), config.seed, client)
