"""Settings of a run as its summary records them, of whatever version: those that tables and reports tell of."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from secure_kg.foundation.errors import UserError


class RecordedTraining(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the training."""

    model: str = ""


class RecordedQueries(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of training on queries."""

    encoder: str = ""


class RecordedPrivacy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of differential privacy."""

    dp: str = "sgd"
    dp_noise: str = ""
    epsilon: float | None = None
    delta: float | None = None
    public_evaluation: bool = False

    @property
    def counts(self) -> bool:
        """Whether a table of counts was released, and nothing trained."""
        return self.dp == "counts"

    @property
    def in_brief(self) -> str:
        """The mechanism, and who adds the noise where clients may share it."""
        return f"{self.dp} {self.dp_noise}" if self.dp in ("sgd", "counts") else self.dp


class RecordedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block that clients shared."""

    name: str
    aligned: bool
    aggregation: str


class RecordedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a run that has ended. Names of protocols are looked up by whoever tells of them."""

    strategy: str
    aggregation: str
    alignment: str
    reveal_names: bool
    min_holders: int
    """The least number of holders, filled in where the settings leave it open."""
    dataset: str = ""
    by: str = ""
    client_data: str | None = None
    adversary: str = "semi-honest"
    max_corrupt: float = 0.0
    client_fraction: float = 1.0
    seed: int = 0
    transcript: bool = False
    training: RecordedTraining = RecordedTraining()
    network: RecordedTraining | None = None
    """None for runs that trained no graph network."""
    queries: RecordedQueries | None = None
    """None for runs that trained on triples."""
    privacy: RecordedPrivacy | None = None
    """None for runs that are not differentially private."""
    blocks: list[RecordedBlock] | None = None
    """None in summaries of earlier versions: what the strategy says."""

    @property
    def model(self) -> str:
        """What was trained, in a word."""
        if self.privacy is not None and self.privacy.counts:
            return "counts"
        return self.queries.encoder if self.queries is not None else (self.network or self.training).model

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """`config`: the settings in a summary. `UserError` if they are none."""
        try:
            return msgspec.convert(dict(config), cls)
        except msgspec.ValidationError as problem:
            raise UserError(f"a summary with settings that cannot be read ({problem})") from None
