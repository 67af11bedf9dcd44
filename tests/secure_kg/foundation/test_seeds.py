"""Streams are fixed, and no two purposes share one."""

import torch

from secure_kg.foundation.seeds import generator, torch_seed


def test_streams_differ_by_seed_and_purpose() -> None:
    purposes = [(0, "a"), (1, "a"), (0, "b"), (0, "a", 1), (0, "a", 2), (0, "a1"), (10, "a"), (1, "0a"), (2**40, "a")]
    draws = {generator(*purpose).integers(2**63) for purpose in purposes}
    assert len(draws) == len(purposes)


def test_stream_is_the_same_everywhere() -> None:
    # Own vector (numpy 2.4, PCG64): a numpy that draws otherwise would silently change every partition.
    assert generator(0, "assign", "triples", 5).permutation(8).tolist() == [2, 6, 3, 7, 0, 4, 1, 5]


def test_a_stream_is_found_again_from_its_name() -> None:
    assert generator(3, "order", 1, 7).integers(2**63) == generator(3, "order", 1, 7).integers(2**63)


def test_torch_seeds_differ_and_fit() -> None:
    seeds = {torch_seed(seed, purpose, client) for seed in (0, 1) for purpose in ("a", "b") for client in (1, 2)}
    assert len(seeds) == 8
    assert all(0 <= value < 2**64 for value in seeds)
    for value in seeds:
        torch.Generator().manual_seed(value)
