"""Partition of a data set: which client gets which triple, and which of them are held out.

Most of the papers' own splits cannot be had, nor drawn again (no fixed seed), so their rules are followed: train, valid
and test are pooled, triples are assigned to clients, and each client's triples are divided 80/10/10 anew.

    triples    FedR: triples are shuffled and dealt out equally. Clients share most entities and relations.
    relations  FedE, FedCQA: relations are divided at random, without overlap and equal in number. Clients share
               entities only, and sizes differ as relations do.
    entities   For studies in which a client owns entities (DP-FLames): every entity has one home client, and a triple
               goes to the home of its head. Tails may live elsewhere; these shared entities are what there is to
               aggregate. The rule for triples is our own: no claim to equal that paper's clients. Homes are drawn at
               random and cut where the running number of triples passes the next equal share, so sizes differ by no
               more than the triples of the busiest heads.
    graph      Every named graph of an RDF data set is a client, in the order of their names. Triples of the default
               graph belong to nobody. A triple of several graphs stands in train at each of them: held out by one
               client, it would be trained on by another.
    whole      Nothing is divided or pooled: one client has the data set's own train, valid and test as published, rows
               in their order. Lines of train that repeat an earlier one are left out, as pooling does, and counted;
               they would only weigh some facts more in training. Anything else stays as it is and is checked
               (`soundness.py`).

Adversary: none here. A partition simulates separate owners from one public file; each client process derives all parts
and keeps its own. Real owners use one folder each (`folders.py`).
"""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, Origin, TripleArray
from secure_kg.data.soundness import check_complete, check_split
from secure_kg.data.sources import FederatedSource, PooledSource, Source, load_source
from secure_kg.data.triples import shown
from secure_kg.data.vocabulary import client_graph, triple_keys
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.seeds import generator

By = Literal["triples", "relations", "entities", "whole", "graph"]
RULES: tuple[By, ...] = get_args(By)
DIVIDING_RULES: tuple[By, ...] = RULES[:3]
"""The rules for any number of clients."""
Homes = npt.NDArray[np.int64]
_ADVICE = "use fewer clients or another split"


def partition(source: Source, clients: int, by: By, seed: int) -> list[ClientGraph]:
    """The graphs of clients 1 .. `clients`, in order; the same for the same arguments on every machine.

    A federated source is returned as published: `clients` must be its number, `by` and `seed` do not apply.
    """
    _check_arguments(clients, by, seed)
    if isinstance(source, FederatedSource):
        if clients != len(source.clients):
            raise DataError(f"the published split has {len(source.clients)} clients, not {clients}")
        graphs = list(source.clients)
    elif by == "whole":
        graphs = [_as_published(source)]
    else:
        assigned = _named_graphs(source, clients) if by == "graph" else _assign(source, clients, by, seed)
        held = np.bincount(np.concatenate(assigned), minlength=len(source.triples))
        graphs = [
            _hold_out(source, rows, held[rows] > 1, generator(seed, "held out", by, clients, number))
            for number, rows in enumerate(assigned, start=1)
        ]
    for number, graph in enumerate(graphs, start=1):
        check_complete(graph, f"client {number}", _ADVICE)
    return graphs


def load_client(
    dataset: str, clients: int, client: int, by: By, seed: int, *, allow_leaky: bool = False
) -> ClientGraph:
    """The part of one client, 1 .. `clients`. All clients derive the same partition, so none has to send it.

    All of it is checked, so all clients refuse a damaged split in the same words.
    """
    require_client(client, clients)
    graphs = partition(load_source(dataset, graphs=by == "graph"), clients, by, seed)
    check_split(graphs, shown(dataset), allow_leaky=allow_leaky)
    return graphs[client - 1]


def require_client(client: int, clients: int) -> None:
    """Raise a DataError unless `client` is one of 1 .. `clients`."""
    if not 1 <= client <= clients:
        raise DataError(f"client {client} is not one of 1 .. {clients}")


def divide(
    triples: TripleArray, rng: np.random.Generator, anchored: npt.NDArray[np.bool_] | None = None
) -> tuple[TripleArray, TripleArray, TripleArray]:
    """Divide (n, 3) triples in local ids 80/10/10 so that each held-out entity and relation also occurs in train.

    In a random order, the first triple of each entity and of each relation is anchored to train; valid and test are
    dealt from the end of the rest. A sparse graph may hold out less than a tenth each. Rows keep their order.
    `anchored`: triples that belong to train in any case.
    """
    count = len(triples)
    order = rng.permutation(count)
    # Triples that are the only one of a name belong to train in any case. Put first, they anchor their other names
    # too, and more triples are free to be held out.
    links = np.bincount(triples[:, [0, 2]].ravel())
    uses = np.bincount(triples[:, 1])
    forced = (links[triples[:, [0, 2]]] == 1).any(axis=1) | (uses[triples[:, 1]] == 1)
    if anchored is not None:
        forced |= anchored
    order = order[np.argsort(~forced[order], kind="stable")]
    ordered = triples[order]
    first_of_entity = np.unique(ordered[:, [0, 2]].ravel(), return_index=True)[1] // 2
    first_of_relation = np.unique(ordered[:, 1], return_index=True)[1]
    free = np.ones(count, dtype=np.bool_)
    free[first_of_entity] = free[first_of_relation] = False
    if anchored is not None:
        free &= ~anchored[order]
    # From the end: there nearly every triple is free, so the choice is nearly uniform. Early free triples are free
    # because their entities were met already, which favours the well connected.
    tenth = max(1, (count + 5) // 10)
    held_out = order[free][::-1][: 2 * tenth]
    valid, test = np.sort(held_out[1::2]), np.sort(held_out[0::2])
    train = np.setdiff1d(np.arange(count), held_out)
    return triples[train], triples[valid], triples[test]


def _check_arguments(clients: int, by: str, seed: int) -> None:
    if clients < 1:
        raise DataError(f"{clients} clients; at least 1 is needed")
    if by not in RULES:
        raise DataError(f"unknown way to divide; choose one of {', '.join(RULES)}")
    if by == "whole" and clients != 1:
        raise DataError(f"--by whole gives one client the data set as published; it cannot serve {clients} clients")
    if seed < 0:
        raise DataError(f"seed {seed} is negative")


def _assign(source: PooledSource, clients: int, by: By, seed: int) -> list[npt.NDArray[np.int64]]:
    """For each client, its rows of the source's triples, ascending."""
    if clients > len(source.triples):  # before any array of that size is made
        raise DataError(f"client {len(source.triples) + 1} has no training triples; {_ADVICE}")
    rules: dict[By, Callable[[PooledSource, int, np.random.Generator], Homes]] = {
        "triples": _by_triples,
        "relations": _by_relations,
        "entities": _by_entities,
    }
    homes = rules[by](source, clients, generator(seed, "assign", by, clients))
    rows = np.argsort(homes, kind="stable")
    return np.split(rows, np.searchsorted(homes[rows], np.arange(1, clients)))


def _by_triples(source: PooledSource, clients: int, rng: np.random.Generator) -> Homes:
    return rng.permutation(np.arange(len(source.triples)) % clients)


def _by_relations(source: PooledSource, clients: int, rng: np.random.Generator) -> Homes:
    home_of_relation = rng.permutation(np.arange(len(source.relations)) % clients)
    homes: Homes = home_of_relation[source.triples[:, 1]]
    return homes


def _by_entities(source: PooledSource, clients: int, rng: np.random.Generator) -> Homes:
    heads = source.triples[:, 0]
    order = rng.permutation(len(source.entities))
    weight = np.bincount(heads, minlength=len(source.entities))[order]
    # An entity's place on the line of all triples is the middle of its own stretch; equal shares of that line are the
    # clients. In integers, so that no machine rounds differently.
    middle_twice = 2 * np.cumsum(weight) - weight
    home_of_entity = np.empty(len(order), dtype=np.int64)
    home_of_entity[order] = np.minimum(middle_twice * clients // (2 * len(heads)), clients - 1)
    homes: Homes = home_of_entity[heads]
    return homes


def _as_published(source: PooledSource) -> ClientGraph:
    if source.parts is None:
        raise DataError("--by whole needs published train, valid and test parts, and this data set has not all three")
    train, valid, test = source.parts
    _, first = np.unique(triple_keys(train, len(source.entities), len(source.relations)), return_index=True)
    origin = Origin(dropped_repeats=len(train) - len(first))
    return ClientGraph(
        source.entities,
        source.relations,
        train[np.sort(first)],
        valid,
        test,
        origin=origin,
        left_out=source.left_out,
        prefixes=source.prefixes,
    )


def _named_graphs(source: PooledSource, clients: int) -> list[npt.NDArray[np.int64]]:
    if source.named_graphs is None:
        raise DataError("--by graph: the data set was read without its named graphs")
    if (number := len(source.named_graphs)) != clients:
        raise DataError(f"--by graph: the data set has {number} named graphs, one for each client, not {clients}")
    return list(source.named_graphs)


def _hold_out(
    source: PooledSource, rows: npt.NDArray[np.int64], shared: npt.NDArray[np.bool_], rng: np.random.Generator
) -> ClientGraph:
    """`shared`: rows that other clients hold as well."""
    empty = source.triples[:0]
    whole = client_graph(source.entities.__getitem__, source.relations.__getitem__, source.triples[rows], empty, empty)
    parts = divide(whole.train, rng, shared if shared.any() else None)
    names = whole.entities, whole.relations
    return ClientGraph(*names, *parts, left_out=source.left_out, prefixes=source.prefixes)
