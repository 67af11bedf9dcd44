"""The arms of DPKGE's tables on one graph, and the statement of privacy of each.

| arm | U | C |
|---|---|---|
| `NDP` | plain steps | plain steps: no privacy |
| `U-only` | plain steps | not used |
| `U-twice` | twice as many plain steps, as many as the other arms have in all | not used |
| `FullDP` | noised steps, as if confidential | noised steps |
| `DPKGE` | plain steps | noised steps |

All but the U arms have the same schedule. Where the rule marks nothing (r = 0), DPKGE is NDP and has no account; where
it marks everything (r = 1), the U arms train nothing and DPKGE is FullDP. In FullDP a statement is in the sums of one
part only, by a public rule, so each is in as many noised sums as a confidential one in DPKGE, and the same noise serves
both.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.accounting.accountant import Budget, epsilon_of, noise_for
from secure_kg.privacy.confidential.marking import Divided
from secure_kg.privacy.confidential.schedule import steps_on
from secure_kg.privacy.confidential.training import ConfidentialTraining, Parts, Source
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.statement import OUTSIDE, PUBLIC, Delta, Statement
from secure_kg.privacy.training import private_model
from secure_kg.privacy.training_config import PrivateTrainingConfig

CLEAR_ARMS: Final = ("NDP", "U-only", "U-twice")
PRIVATE_ARMS: Final = ("DPKGE", "FullDP")
MOST_NOISE: Final = 1.0
"""All noise together, in deviations of the initial rows."""
UNIT: Final = "one confidential statement, added or removed"


@dataclass(frozen=True, slots=True)
class Arm:
    """What is trained, on which division of the training statements."""

    name: str
    graph: ClientGraph
    statements: Divided
    config: PrivateTrainingConfig
    """Its steps count passes."""
    rate: float
    """The step per unit of a mean gradient, by which steps are scaled."""
    most_noise: float = MOST_NOISE
    """The bound on all noise together, in deviations of the initial rows."""

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("bound on noise", self.most_noise)):
            if not 0 < value < float("inf"):
                raise UserError(f"the {name} must be a positive number")

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.graph.entities), len(self.graph.relations)

    def trained(self, seed: int, budget: Budget | None = None) -> EmbeddingModel:
        """One training. The private arms need a budget, unless there is nothing to protect."""
        config = self.config
        if self.name == "U-twice":
            config = replace(config, steps=2 * config.steps)
        if budget is None or self.noised_steps == 0:
            return ConfidentialTraining(self.sizes, self.parts(), config, seed).run(None)
        noise = self.noise(budget)
        parts = self.parts(self._weight_under(noise, seed))
        return ConfidentialTraining(self.sizes, parts, config, seed).run(Sgd(noise, config.sampling))

    def noise(self, budget: Budget) -> float:
        """The multiplier with which all noised steps stay within the budget."""
        return noise_for(budget, self.noised_steps, self.config.sampling)

    @property
    def noised_steps(self) -> int:
        """In which one statement is, by its part; what an accountant is asked about."""
        if self.name == "DPKGE" and not self.statements.protects:
            return 0
        return steps_on("C", self.config.steps, {"C": self.config.sampling})

    def statement(self, budget: Budget, tuned_on: str) -> Statement:
        """What may be said of the private arms."""
        mechanism = Sgd(self.noise(budget), self.config.sampling)
        (release,) = mechanism.releases()
        # FullDP protects all statements, but its clip and its step were chosen by a look at the unrestricted ones.
        everything = self.name == "FullDP"
        return Statement(
            unit="one statement, added or removed" if everything else UNIT,
            epsilon=epsilon_of([(release, self.noised_steps)], budget.delta),
            delta=Delta(accountant=budget.delta),
            mechanism="Gaussian noise on all rows of clipped gradients",
            accountant="exact composition of Gaussians" if release.full else "sampled Gaussians, better of 2 bounds",
            noise=release.noise,
            steps=self.noised_steps,
            sampling=release.sampling,
            clip=self.config.clip,
            clients=1,
            spare=0,
            public=PUBLIC if everything else (*PUBLIC, "unrestricted statements"),
            outside=(*OUTSIDE, "clip and step, which follow the unrestricted statements") if everything else OUTSIDE,
            tuned_on=tuned_on,
        )

    def parts(self, weight: float = 1.0) -> Parts:
        """Every statement has the same weight, times `weight` where there is noise.

        No scale depends on C: a public guess stands for its size.
        """
        clear, secret = self.statements.unrestricted, self.statements.confidential
        scale, noised = self._scale(), {"U": self.name == "FullDP", "C": self.name != "NDP"}
        parts: Parts = {}
        if len(clear) > 0:
            parts["U"] = Source(clear, scale * (weight if noised["U"] else 1.0), noised["U"])
        if self.name not in ("U-only", "U-twice") and self.statements.protects:
            parts["C"] = Source(secret, scale * (weight if noised["C"] else 1.0), noised["C"])
        return parts

    def _scale(self) -> float:
        number = len(self.statements.unrestricted)
        if self.name not in ("U-only", "U-twice"):
            number += round(self.statements.expected)
        return self.rate / (self.config.sampling * max(1, number))

    def _weight_under(self, noise: float, seed: int) -> float:
        """At most 1, and so small that the noise of all steps adds up to no more than the spread of initial rows.

        Otherwise a small ε would not end with what U alone gives but with noise. All of it is public. FullDP has noise
        on both parts.
        """
        spread = float(private_model(self.config, self.sizes, seed, None).entity.detach().std())
        noised = sum(part.noised for part in self.parts().values())
        sizes = np.linspace(1.0, self.config.last_step, self.noised_steps * noised)
        walked = self._scale() * noise * self.config.clip * float(np.sqrt((sizes**2).sum()))
        return min(1.0, self.most_noise * spread / walked)
