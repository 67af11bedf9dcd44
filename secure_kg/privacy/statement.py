"""The privacy statement of a run: what epsilon and delta are of, what was done for it, and what they do not cover."""

import math
from typing import ClassVar, Final

import msgspec

from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted

UNIT: Final = "one triple, added or removed"
PUBLIC: Final = ("entity and relation sets", "settings", "evaluation triples")
OUTSIDE: Final = ("alignment",)
LITTLE: Final = 0.95
"""Right guesses beyond this share are as good as certain."""


class Delta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Delta by its parts. Each is a probability with which the bound by epsilon may fail."""

    accountant: float
    sampler: float = 0.0
    """How far drawn noise is from its ideal distribution, as far as it costs delta."""
    tails: float = 0.0
    """Draws that were cut off; likewise."""
    test: float = 0.0
    """Tests of a mechanism that let through what they should not; of all steps."""

    def __post_init__(self) -> None:
        parts = (self.accountant, self.sampler, self.tails, self.test)
        if not all(0 <= part < 1 for part in parts) or not 0 < self.total < 1:
            raise UserError("the parts of delta are probabilities, and so is their sum")

    @property
    def total(self) -> float:
        return self.accountant + self.sampler + self.tails + self.test


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be said of a run. All of it is public."""

    kind: ClassVar[str] = "privacy statement"

    unit: str = UNIT
    epsilon: float
    delta: Delta
    mechanism: str
    """In a few words, such as "Gaussian noise on clipped gradients"."""
    accountant: str
    """By which analysis, such as "exact composition of Gaussians"."""
    noise: float
    """The noise multiplier: deviation over sensitivity."""
    steps: int
    sampling: float
    clip: float
    clients: int
    spare: int
    """Clients that may be corrupt or drop out without less noise than this in a sum."""
    public: tuple[str, ...] = PUBLIC
    """What is assumed to be known to everybody."""
    outside: tuple[str, ...] = OUTSIDE
    """What epsilon does not cover."""
    tuned_on: str
    """On which data settings were chosen. If on private data, epsilon does not cover it."""

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < float("inf") and self.noise > 0 and self.clip > 0 and self.steps > 0):
            raise UserError("a privacy statement has epsilon, noise, clip and steps above 0")
        if not (0 < self.sampling <= 1 and 0 <= self.spare < self.clients):
            raise UserError("a privacy statement has a sampling rate up to 1, and fewer spare clients than clients")

    @property
    def best_guess(self) -> float:
        """The largest share of right guesses, of any method, where a coin decides whether a triple is in.

        It is (e^epsilon + delta) / (e^epsilon + 1), the bound of (epsilon, delta) on the two errors of a test.
        """
        odds = math.exp(-self.epsilon)
        return min(1.0, (1 + self.delta.total * odds) / (1 + odds))

    def in_words(self) -> str:
        """One sentence for people."""
        most, little = f"{100 * self.best_guess:.4g} %", self.best_guess > LITTLE
        return (
            "Whoever sees all that was released, and knows every other triple, guesses whether one given triple was in "
            f"the training data right in at most {most} of cases, where a coin is right in 50 %"
            + ("; by itself this bound promises little." if little else ".")
        )

    def lines(self) -> list[str]:
        """The statement as lines of text."""
        delta = self.delta
        parts = f"accountant {delta.accountant:.3g}, sampler {delta.sampler:.1g}, cut tails {delta.tails:.1g}"
        parts += f", tests of rows {delta.test:.3g}" if delta.test else ""
        batch = "full batches" if self.sampling == 1 else f"Poisson samples at rate {self.sampling:.4g}"
        return [
            self.in_words(),
            f"Unit of privacy: {self.unit}.",
            f"Epsilon {self.epsilon:.4g}, delta {delta.total:.3g} ({parts}).",
            f"Mechanism: {self.mechanism}; noise {self.noise:.4g} times a clip of {self.clip:.4g}, "
            f"{counted(self.steps, 'step')}, {batch}.",
            f"Accountant: {self.accountant}.",
            f"Clients: {self.clients}, of which {self.spare} may be corrupt or drop out.",
            f"Assumed public: {', '.join(self.public)}.",
            f"Outside epsilon: {', '.join((*self.outside, f'settings, which were tuned on {self.tuned_on}'))}.",
        ]

    def to_json(self) -> dict[str, object]:
        """As it stands in a file."""
        written: dict[str, object] = msgspec.to_builtins(self)
        return written

    @classmethod
    def from_json(cls, value: object, where: object) -> "Statement":
        """The statement in an object that was read. `UserError` in one line if it is none. `where` names the file."""
        try:
            return msgspec.convert(value, cls)
        except (msgspec.ValidationError, UserError) as problem:
            raise UserError(f"{where}: not a {cls.kind} ({problem})") from None

