"""What the runs of a table are told beyond their cells: the paper's settings, unless the user gives others."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Self

from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.typed_fields import flag
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.queries.shapes import ENCODERS

PUBLISHED: Final = "published"


@dataclass(frozen=True, slots=True)
class TableSettings(ABC):
    """Settings of the runs of one table."""

    def deviations(self, other: Self) -> list[dict[str, float | str]]:
        """Where `other` is not as this, the paper's settings, say."""
        return [
            {"setting": flag(name), "paper": here, "here": there}
            for name, here in dataclasses.asdict(self).items()
            if (there := getattr(other, name)) != here
        ]

    def changed(self, given: dict[str, str]) -> Self:
        """With some of them as the user wrote them; `UserError` for what is no setting, or not of its kind."""
        kinds = {entry.name: type(getattr(self, entry.name)) for entry in dataclasses.fields(self)}
        values = {}
        for name, text in given.items():
            if name not in kinds:
                raise UserError(f"{flag(name)}: the runs of this table have no such setting to be changed")
            try:
                values[name] = kinds[name](text)
            except ValueError:
                raise UserError(f"{flag(name)} {text}: must be a number") from None
        return dataclasses.replace(self, **values)

    @abstractmethod
    def told(self, model: str) -> dict[str, Any]:
        """By the names of the run's own settings, for a run of this model."""

    @abstractmethod
    def check(self) -> None:
        """What no run would accept is a mistake of this command, not so many failed runs."""


@dataclass(frozen=True, slots=True)
class Settings(TableSettings):
    """Of runs that train on triples. Defaults are FedR's, section 4 and appendix B."""

    dim: int = 128
    local_epochs: int = 3
    lr: float = 1e-3
    batch_size: int = 512
    negatives: int = 256
    margin: float = 10.0
    temperature: float = 1.0
    corrupt: str = "tail"
    rounds: int = 300
    eval_every: int = 5
    patience: int = 5

    def told(self, model: str) -> dict[str, Any]:
        return {"model": model, **dataclasses.asdict(self)}

    def check(self) -> None:
        values = dataclasses.asdict(self)
        own = {entry.name for entry in dataclasses.fields(TrainingConfig)}
        config = TrainingConfig(**{name: value for name, value in values.items() if name in own})
        RunConfig(**{name: value for name, value in values.items() if name not in own}, training=config)


@dataclass(frozen=True, slots=True)
class StudySettings(Settings):
    """Of runs that study how many clients take part in a round."""

    client_fraction: float = 0.5


@dataclass(frozen=True, slots=True)
class QuerySettings(TableSettings):
    """Of runs that train on logical queries. Defaults are those of FedCQA's public code, as far as it has them."""

    dim: int = 400
    local_steps: int = 1
    lr: float = 2e-3
    batch_size: int = 64
    rounds: int = 300_000
    eval_every: int = 50_000
    patience: int = 5
    client_fraction: float = 0.5
    coding: str = "published"
    """How queries are encoded and compared: `published`, as the public code does; `usual`, as the papers say."""
    # FedCQA has nothing of what follows: its loss is over all entities, its rate stays, its queries are given.
    negatives: int = 512
    lr_decay: float = 1.0
    step: float = 1.0
    eval_queries: int = 300

    def told(self, model: str) -> dict[str, Any]:
        encoder = model.lower()
        values = {"encoder": encoder, **dataclasses.asdict(self)}
        if values.pop("coding") == PUBLISHED:
            values |= {"score": "dot"} | ({"published": True} if ENCODERS[encoder].varies else {})
        return values

    def check(self) -> None:
        if self.coding not in (PUBLISHED, "usual"):
            raise UserError(f"--coding must be {PUBLISHED} or usual")
        values = self.told("gqe")
        own = {entry.name for entry in dataclasses.fields(QueryConfig)}
        config = QueryConfig(**{name: value for name, value in values.items() if name in own})
        rest = {name: value for name, value in values.items() if name not in own}
        RunConfig(**rest, strategy="fedcqa", queries=config)
