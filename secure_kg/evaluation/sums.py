"""Ranking results as sums: what is added over blocks, sides and clients before anyone divides; free of torch."""

from dataclasses import dataclass

from secure_kg.foundation.errors import DataError


@dataclass(frozen=True, slots=True)
class RankingSums:
    """Sums over ranked triples. Adding them weights every triple alike, whichever client holds it."""

    count: int = 0
    reciprocal: float = 0.0
    hits1: int = 0
    hits3: int = 0
    hits10: int = 0
    hits5: int = 0
    doubled_ranks: int = 0
    """Sum of twice the rank: a rank between ties may be half a number."""

    def __add__(self, other: "RankingSums") -> "RankingSums":
        return RankingSums(
            self.count + other.count,
            self.reciprocal + other.reciprocal,
            self.hits1 + other.hits1,
            self.hits3 + other.hits3,
            self.hits10 + other.hits10,
            self.hits5 + other.hits5,
            self.doubled_ranks + other.doubled_ranks,
        )

    def metrics(self) -> dict[str, float]:
        """Mean reciprocal rank, hit rates and mean rank."""
        if self.count == 0:
            raise DataError("nothing to rank: no client has a triple in this part")
        return {
            "mrr": self.reciprocal / self.count,
            "hits@1": self.hits1 / self.count,
            "hits@3": self.hits3 / self.count,
            "hits@5": self.hits5 / self.count,
            "hits@10": self.hits10 / self.count,
            "mean_rank": self.doubled_ranks / 2 / self.count,
        }
