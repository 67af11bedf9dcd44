"""Which queries across graphs a run is judged by; free of torch."""

from dataclasses import dataclass

from secure_kg.data.graph import Part


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """How many queries of each type, of which part, drawn by which seed."""

    part: Part = "test"
    queries: int = 500
    seed: int = 0
