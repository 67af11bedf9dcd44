"""A client's graph and trained model from the files of a run. Whoever has put them there, a fault is one line."""

from pathlib import Path

import torch

from secure_kg.data.client_data import load_graph
from secure_kg.data.graph import ClientGraph
from secure_kg.data.soundness import about_graph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.fusion.fusing import saved_model
from secure_kg.fusion.scores import Weights
from secure_kg.learning.device import CPU, to_device
from secure_kg.models.base import EmbeddingModel
from secure_kg.models.networks.base import Decoder, Nodes
from secure_kg.models.networks.config import NetworkConfig
from secure_kg.models.networks.kinds import imported, network_kind
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.shapes import model_kind
from secure_kg.queries.retrieval.files import load_model
from secure_kg.runs.checkpoint import Arrays, load_numbers
from secure_kg.runs.next_step import resume_command
from secure_kg.runs.records.client_result import ClientResult
from secure_kg.runs.records.fusion import FusionRecord
from secure_kg.runs.run_folder import RunFolder, read_config, read_record
from secure_kg.trained.scorers import EmbeddingScorer, FusedPairScorer, NetworkScorer, QueryScorer, Scorer

_SIZES = ("entities", "relations", "train_triples", "valid_triples", "test_triples")


def model_path(run: Path, client: int) -> Path:
    """Where the model of a client lies."""
    return RunFolder(run).client(client) / "model.safetensors"


def recorded_result(run: Path, client: int) -> ClientResult | None:
    """What the client has written about its model; None if that file is not here."""
    path = RunFolder(run).client(client) / "result.json"
    return read_record(path, ClientResult) if path.exists() else None


def own_graph(run: Path, config: RunConfig, client: int) -> ClientGraph:
    """The client's graph as the settings name it. `UserError` if it is not the one that the model was trained on."""
    graph, result = load_graph(config, config.clients or client, client), recorded_result(run, client)
    if result is None:
        return graph
    if result.client != client:
        raise UserError(f"{RunFolder(run).client(client)}: has the files of client {result.client}")
    recorded = result.figures | result.about
    for name, size in about_graph(graph).items():
        if name in _SIZES and recorded.get(name, size) != size:
            what = name.replace("_", " ")
            raise UserError(f"{run}: the data have changed: {size} {what}, and {recorded[name]} when it was trained")
    return graph


def load_scorer(run: Path, config: RunConfig, client: int, graph: ClientGraph, device: torch.device = CPU) -> Scorer:
    """The client's model of the best round."""
    if config.queries is not None:
        return QueryScorer(_query_model(run, config, client, graph).to(device))
    if config.network is not None:
        return _network_scorer(run, config.network, client, graph, device)
    return EmbeddingScorer(_embedding_model(run, config, client, graph).to(device))


def load_fused(record: FusionRecord, client: int, graph: ClientGraph, device: torch.device = CPU) -> Scorer:
    """Both models of a fusion, and the weights that this client has fitted."""
    fused = next((one for one in record.clients if one.client == client), None)
    if fused is None or not {"single", "federated"} <= fused.weights.keys():
        raise UserError(f"the fusion has no weights of client {client}")
    runs = Path(record.single.run), Path(record.federated.run)
    for config in map(read_config, runs):
        if config.trained is not config.training:
            raise UserError(f"a fusion of a run of {config.model}; only embeddings of triples fuse")
    single, federated = (_embedding_model(run, read_config(run), client, graph).to(device) for run in runs)
    weights = Weights(fused.weights["single"], fused.weights["federated"], fused.weights.get("bias", 0.0))
    return FusedPairScorer(single, federated, weights)


def _embedding_model(run: Path, config: RunConfig, client: int, graph: ClientGraph) -> EmbeddingModel:
    path, training = _present(run, client), config.training
    arrays = load_numbers(path)[0]
    widths = model_kind(training.model).widths(training.dim)
    numbers = len(graph.entities), len(graph.relations)
    for name, number, width in zip(("entity", "relation"), numbers, widths, strict=True):
        _require(path, arrays, name, (number, width))
    model = saved_model(arrays, training, graph, CPU)
    return model.requires_grad_(False)


def _query_model(run: Path, config: RunConfig, client: int, graph: ClientGraph) -> QueryModel:
    path, queries = _present(run, client), config.queries
    if queries is None:
        raise ValueError("a run without queries")
    size = QueryModelSize(len(graph.entities), len(graph.relations), queries.encoder, queries.shape, queries.score)
    return load_model(path.parent, size)


def _network_scorer(
    run: Path, network: NetworkConfig, client: int, graph: ClientGraph, device: torch.device
) -> NetworkScorer:
    path = _present(run, client)
    arrays, widths = load_numbers(path)[0], network.encoded_widths
    numbers = len(graph.entities), len(graph.relations)
    for name, number, width in zip(("entity", "relation"), numbers, widths, strict=True):
        _require(path, arrays, f"encoded.{name}", (number, width))
    kind = network_kind(network.model)
    decoder: Decoder = imported(kind.decoder)(network)
    with torch.no_grad():
        for name, value in decoder.state_dict(keep_vars=True).items():
            found = arrays.get(f"decoder.{name}")
            if found is None or found.shape != tuple(value.shape) or found.dtype != "float32":
                raise UserError(f"{path}: no decoder of {kind.name} as the settings have it")
            value.copy_(torch.from_numpy(found))
    nodes = Nodes(*(to_device(arrays[f"encoded.{name}"], device) for name in ("entity", "relation")))
    return NetworkScorer(kind.name, nodes, decoder.eval().requires_grad_(False).to(device))


def _present(run: Path, client: int) -> Path:
    path = model_path(run, client)
    if not path.is_file():
        if not (run / "summary.json").exists():
            again = resume_command(run, read_config(run).strategy)
            raise UserError(f"{path}: not there: the run has not come to its end ({again} continues it)")
        raise UserError(f"{path}: not there: client {client} dropped out, or its folder is elsewhere")
    return path


def _require(path: Path, arrays: Arrays, name: str, shape: tuple[int, int]) -> None:
    found = arrays.get(name)
    if found is None or found.dtype != "float32":
        raise UserError(f"{path}: not a model of embeddings (no {name} rows of 32-bit numbers)")
    if found.shape != shape:
        has = " × ".join(map(str, found.shape))
        raise UserError(
            f"{path}: {name} rows are {has}, settings and data ask for {shape[0]} × {shape[1]}: "
            "another run's model, or the data have changed"
        )
