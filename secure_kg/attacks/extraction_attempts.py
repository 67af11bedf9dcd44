"""Extraction tried on real answers: of `plain`, of opened means beyond the budget and within it, and of `topk`."""

import math
from typing import Final

from protocols.foundation.errors import SumAbandoned
from protocols.scores.budget import Helpers, default_limit
from secure_kg.attacks.asked_scores import CLIENTS, MODEL, Asking, means_of
from secure_kg.attacks.extraction import (
    MORE_QUERIES,
    Extraction,
    Queries,
    Rows,
    Similarity,
    chosen_queries,
    estimate_result,
    extraction_result,
    rows_from_means,
    rows_from_positions,
)
from secure_kg.attacks.result import AttackResult
from secure_kg.foundation.seeds import generator

POSITIONS: Final = 200
WIDTH: Final = 16
TOP: Final = 10


def made_up_table(seed: int, positions: int = POSITIONS, width: int = WIDTH) -> Rows:
    """Rows of length about 1, with nothing in common."""
    return generator(seed, "trained rows").normal(scale=1 / math.sqrt(width), size=(positions, width))


def from_opened_means(
    backend: str, similarity: Similarity = "inner product", *, queries: int = WIDTH + MORE_QUERIES, seed: int = 0
) -> AttackResult:
    """Rows from the means of as many queries as scorers are willing to open."""
    rows, asked = made_up_table(seed), _queries(queries, seed)
    means = means_of(Asking(backend, rows, asked, similarity, POSITIONS).answered(), POSITIONS)
    found = Extraction.score(rows_from_means(asked, means, similarity), rows)
    return extraction_result(found, queries, f"means opened by '{backend}', {similarity}", f"extraction-{backend}")


def within_budget(backend: str, similarity: Similarity = "inner product", *, seed: int = 0) -> AttackResult:
    """The same asker where scorers keep the default budget: what goes beyond it is refused, so it asks for less."""
    rows, limit = made_up_table(seed), default_limit(WIDTH, Helpers.of(len(CLIENTS), MODEL))
    wanted = _queries(WIDTH + MORE_QUERIES, seed)
    try:
        Asking(backend, rows, wanted, similarity, POSITIONS, limit).answered()
    except SumAbandoned:
        asked = wanted[:limit]
    else:
        raise AssertionError("scorers have opened more means than their budget allows")
    means = means_of(Asking(backend, rows, asked, similarity, POSITIONS, limit).answered(), POSITIONS)
    found = Extraction.score(rows_from_means(asked, means, similarity), rows)
    what = f"means opened by '{backend}' within the budget, {similarity}"
    return extraction_result(found, limit, what, f"extraction-{backend}-budget")


def from_best_positions(
    similarity: Similarity = "inner product",
    *,
    queries: int = WIDTH + MORE_QUERIES,
    seed: int = 0,
) -> tuple[AttackResult, AttackResult]:
    """Answers of `topk`: whether rows come out exactly, and whether an estimate has their direction."""
    rows, asked = made_up_table(seed), _queries(queries, seed)
    answers = Asking("topk", rows, asked, similarity, TOP).answered().positions
    found = Extraction.score(rows_from_positions(asked, answers, POSITIONS), rows)
    what = f"the {TOP} best of {POSITIONS} positions by 'topk', {similarity}"
    return (
        extraction_result(found, queries, what, "extraction-topk"),
        estimate_result(found, queries, what, "estimate-topk"),
    )


def _queries(count: int, seed: int) -> Queries:
    return chosen_queries(WIDTH, count, generator(seed, "chosen queries"))
