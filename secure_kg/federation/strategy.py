"""What clients share. A strategy is data: the round loop is the same for all of them."""

from dataclasses import dataclass
from typing import Final, Literal

from secure_kg.models.shapes import relation_width


@dataclass(frozen=True, slots=True)
class Strategy:
    """`shared` names the table whose rows are aligned and averaged; None: nobody shares anything."""

    name: str
    title: str
    shared: Literal["relation"] | None

    def row_width(self, model: str, dim: int) -> int:
        """Numbers per shared row."""
        return relation_width(model, dim) if self.shared else 0


STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Strategy("fedr", "FedR", "relation"),
        Strategy("local", "Local", None),
    )
}
