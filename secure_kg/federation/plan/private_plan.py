"""The noise of a private run, from its settings alone: every party reckons the same, and none asks another.

Unit:         one triple of one client, added or removed. Which names each client aligns is taken as given.
A step:       all clients have the same shared rows E. Each computes the clipped sum g of its gradients at E, and adds
              E − s n g to the sum of rows, for every row of the union, whether it has the name or not: a mean of n
              such tables is E − s Σ g. So averaging is what it always is, and a client applies the mean, nothing else.
Sensitivity:  one triple moves the sum by at most s n C. The step size s falls linearly, and so does the noise.
Own tables:   rows that are not shared get all noise by the client itself. One clip covers both.
Chosen rows:  under adafest and flames a client's mechanism gives noised sums of both tables, one release on one grid,
              and the client adds E − s n times those. Rows that were not chosen are added as E, exactly, and no noise
              comes with the sum. What tests of flames cost is taken off delta beforehand.

**Joint rounding.** A triple moves shared entries by A and own ones by B before rounding, A² + B² ≤ C² in units of the
clip. Both are rounded, to different units, and both deviations are the multiplier z times C + u k^1/2, u the unit and k
the entries that a triple may move. With t = u k^1/2 / C, the share of entry group i in the squared ratio of shift to
deviation is at most (α_i² + t_i κ_i²) / (1 + t_i) / z², α and κ unit vectors, by convexity. Together that is at most
(1 + max t) / z². Both t are at most 2^-10 (`_ROUNDING`), so a multiplier larger by 2^-9 makes up for it, and for the
variance that smoothing takes from deviations of more than 1024 units.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from protocols.foundation.errors import EncodingOverflow, UnknownProtocol
from protocols.sums.interface import SumLayout
from protocols.sums.noise import NONE
from protocols.sums.noise_shares import CUT, NoiseShares
from secure_kg.federation.plan.blocks import AGREEING_ROUND
from secure_kg.foundation.errors import UserError
from secure_kg.models.shapes import entity_width, relation_width
from secure_kg.privacy.accounting.federated import Calibrated, calibrated
from secure_kg.privacy.accounting.releases import Budget
from secure_kg.privacy.accounting.shares import SharedSums, deviation_for, settled_deviation
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.privacy.statement import OUTSIDE, PUBLIC, Delta, Statement
from secure_kg.privacy.training_config import USUAL_STEP, usual_step

if TYPE_CHECKING:
    from secure_kg.federation.plan.settings import RunConfig
    from secure_kg.federation.plan.strategies import Strategy

_ROUNDING: Final = 2.0**-10
_BOTH_TABLES: Final = 1 + 2.0**-9
_EXACT: Final = "exact composition of Gaussians"
_SAMPLED: Final = "Poisson samples, by the smaller of two bounds of dp_accounting"
_SLACK: Final = 1 + 2.0**-20
"""Clipped sums keep the clip to the last bit (`secure_kg.privacy.gradients.clipped_sums`). A client multiplies them by
s n and adds them to E, in double precision: of two neighbours with up to 2³¹ triples, each of these roundings moves the
result by at most 2 · 2⁻⁵³ · 2³¹ s n C."""
_LAST_PLACE: Final = 2.0**-52
"""And by this of the bound of shared values, at each coordinate that a triple moves: E is rounded with the sum."""
_ATTEMPTS: Final = 16
"""The last attempt at a private set union has room for so many times as many names as the first."""
_TABLES_DRAWN: Final = 3
"""A mechanism that chooses rows draws for both tables, and for a number per entity or two: less than three tables."""
_WHAT: Final = {
    "sgd": "Gaussian noise on clipped sums of gradients",
    "adafest": "Gaussian noise on clipped sums of gradients, in rows that were chosen by noised counts",
    "flames": "Gaussian noise on clipped sums of gradients, in rows that were chosen by noised gaps between norms",
}


@dataclass(frozen=True, slots=True)
class PrivatePlan:
    """What follows from the settings of a private run. Public."""

    privacy: PrivacyConfig
    clients: int
    corrupt: int
    """At least one: a client that is curious about the others can take its own noise off a mean."""
    dropouts: int
    shared: str | None
    """The tables whose rows are shared."""
    rounds: int
    widths: tuple[int, int]
    """Of entity rows and relation rows."""
    negatives: int
    union_rows: int
    """No union may have more rows, nor any client's own table."""
    bound: float
    """Of shared values (`--clip`)."""
    ring_bits: int

    @classmethod
    def of(cls, settings: "RunConfig", strategy: "Strategy") -> "PrivatePlan":
        """`UserError` where the settings leave no room for noise."""
        if settings.privacy is None or settings.clients is None:
            raise UserError("a private run needs its settings of privacy and the number of clients")
        clients, full = settings.clients, settings.privacy.dp_noise == "full" or strategy.shared is None
        threat = settings.threat_model
        return cls(
            settings.privacy,
            clients,
            0 if full else max(1, threat.corrupt_of(clients)),  # every client reads the means, and knows its own noise
            clients - 1 if full else threat.dropouts_of(clients),
            strategy.shared,
            settings.rounds,
            cls._widths(settings),
            settings.training.negatives,
            _ATTEMPTS * settings.first_union_bound,
            cls._bound(settings),
            settings.ring_bits,
        )

    @staticmethod
    def _widths(settings: "RunConfig") -> tuple[int, int]:
        training = settings.training
        return entity_width(training.model, training.dim), relation_width(training.model, training.dim)

    @staticmethod
    def _bound(settings: "RunConfig") -> float:
        return settings.clip

    # --- steps ---

    @property
    def first_round(self) -> int:
        """The first round that looks at triples."""
        return 1 if self.shared is None else AGREEING_ROUND + 1

    @property
    def steps(self) -> int:
        return self.rounds - self.first_round + 1

    def step_at(self, round_id: int) -> float:
        """The size of a round's step, per unit of the sum over all clients."""
        done = (round_id - self.first_round) / max(1, self.steps - 1)
        return self.first_step * (1.0 - (1.0 - self.privacy.dp_last_step) * done)

    @property
    def first_step(self) -> float:
        """As given, or as the budget's noise asks for. It does not depend on who adds the noise.

        Beside tables that are not shared, values of 32 bits would be too coarse for a shorter one than usual.
        """
        if self.privacy.dp_step is not None or self.keeps_own:
            return self.privacy.dp_step or USUAL_STEP
        return usual_step(self.calibrated.multiplier, max(1, self.steps), self.privacy.dp_sampling)

    def is_shared(self, table: str) -> bool:
        """Whether the rows of `entity` or `relation` are."""
        return self.shared is not None and table in self.shared.split(" and ")

    @property
    def keeps_own(self) -> bool:
        """Whether a table is shared and another one is not."""
        return self.shared in ("entity", "relation")

    # --- noise ---

    @property
    def coordinates(self) -> int:
        """How many numbers a triple can move: rows of both ends, of the candidates and of the relation."""
        return (self.negatives + 2) * self.widths[0] + self.widths[1]

    @property
    def calibrated(self) -> Calibrated:
        entries = self.union_rows * max(self.widths) * (_TABLES_DRAWN if self.privacy.chooses else 1)
        return _calibrated(self.privacy, self.steps, entries, self.clients)

    @property
    def own_multiplier(self) -> float:
        """Of tables that are not shared, and of all that a client noises by itself."""
        return self.calibrated.multiplier * _BOTH_TABLES

    @property
    def step_delta(self) -> float:
        """What the test of one step may cost (flames)."""
        return self.privacy.test_delta / self.steps

    @property
    def noise(self) -> str:
        """Of the sums of shared rows, as blocks have it. None where clients add what has noise already."""
        return NONE if self.privacy.chooses else self.shares().text

    def require_room(self) -> None:
        """`UserError` if the budget, or the ring, has no room for the noise."""
        if self.shared is not None and not self.privacy.chooses:
            self.shares()
        elif self.steps:
            self.calibrated  # noqa: B018  it may refuse

    def shares(self) -> NoiseShares:
        """The shares of noise in sums of shared rows."""
        multiplier = self.calibrated.multiplier * (_BOTH_TABLES if self.keeps_own else 1.0)
        try:
            plain = NoiseShares(1.0, self.clients, self.corrupt, self.dropouts)
            first = settled_deviation(multiplier, self._sums(plain, self.first_round, 1.0), self._unit)
            unit = self._unit(first)
            last = deviation_for(multiplier, self._sums(plain, self.rounds, unit))
        except UnknownProtocol as problem:
            raise UserError(f"--dp: {problem}; lower --max-dropout, or --dp-noise full") from None
        except EncodingOverflow as problem:
            raise UserError(f"--dp: {problem}") from None
        if self.keeps_own and unit * math.sqrt(self.coordinates) > _ROUNDING * self._sensitivity(self.rounds):
            raise UserError(f"--dp: shared values of {unit:.2g} are too coarse for so small a step; --ring-bits 64")
        falling = min(1.0, last / first)
        return NoiseShares(first, self.clients, self.corrupt, self.dropouts, self.first_round, self.rounds, falling)

    @property
    def sensitivity(self) -> float:
        """The most that one triple changes a client's sum of clipped gradients by, in L2."""
        return self.privacy.dp_clip * _SLACK

    def _sensitivity(self, round_id: int) -> float:
        in_rows = _LAST_PLACE * self.bound * math.sqrt(self.coordinates)
        return self.step_at(round_id) * self.clients * self.sensitivity + in_rows

    def _sums(self, shares: NoiseShares, round_id: int, unit: float) -> SharedSums:
        moved = self.coordinates
        return SharedSums(shares, unit, self._sensitivity(round_id), moved, moved, self.privacy.dp_sampling)

    def _unit(self, deviation: float) -> float:
        """Of the ring, with room for noise of this deviation in all."""
        share = CUT * deviation / math.sqrt(self.clients - self.corrupt - self.dropouts)
        layout = SumLayout(1, 1, self.bound, 1, self.clients, self.ring_bits, share)
        return layout.codec.unit

    @property
    def least_contributors(self) -> int:
        """A sum of fewer clients has too little noise."""
        return self.clients - self.dropouts

    def statement(self, *, single_read: bool) -> Statement:
        """What may be said of the run. `single_read`: the server reads single contributions."""
        privacy, found = self.privacy, self.calibrated
        outside = [*OUTSIDE, "the number of rows and the time that steps take"]
        how = "all of it by every client"
        if self.shared is not None and privacy.dp_noise == "shares":
            how = "in shares"
            if single_read:
                outside.append("the server, which read single contributions beside their shares of noise")
        public = PUBLIC if privacy.public_evaluation else tuple(one for one in PUBLIC if one != "evaluation triples")
        return Statement(
            unit="one triple of one client, added or removed",
            epsilon=privacy.budget.epsilon,
            delta=Delta(
                accountant=found.delta_of_accountant,
                sampler=found.delta_of_sampler,
                tails=found.delta_of_tails,
                test=privacy.test_delta,
            ),
            mechanism=f"{self._what}, {how}",
            accountant=_EXACT if privacy.dp_sampling == 1 else _SAMPLED,
            noise=found.multiplier,
            steps=self.steps,
            sampling=privacy.dp_sampling,
            clip=self._clip,
            clients=self.clients,
            spare=self.corrupt + self.dropouts,
            public=public,
            outside=tuple(outside),
            tuned_on=privacy.dp_tuned_on or "data that nobody has named (--dp-tuned-on)",
        )

    @property
    def _what(self) -> str:
        return _WHAT[self.privacy.dp]

    @property
    def _clip(self) -> float:
        return self.privacy.dp_clip


@lru_cache(maxsize=64)
def _calibrated(privacy: PrivacyConfig, steps: int, entries: int, clients: int) -> Calibrated:
    budget = Budget(privacy.budget.epsilon, privacy.budget.delta - privacy.test_delta)
    return calibrated(budget, steps, privacy.dp_sampling, entries, clients)


def require_private(settings: "RunConfig", strategy: "Strategy") -> None:
    """Refuse what private training cannot do, or what would make its statement untrue."""
    name = f"--strategy {strategy.name}"
    if strategy.learner.of_queries:
        raise UserError(f"--dp: {name} trains on queries, and private gradients are those of triples")
    if strategy.pools:
        raise UserError(f"--dp: under {name} all triples are in one place, and no client adds noise")
    if settings.client_fraction < 1:
        raise UserError("--client-fraction: under --dp all clients are in every round, for each brings its noise")
    if settings.min_holders is not None:
        raise UserError("--min-holders: under --dp every client adds to every row, and holders are not counted")
    if settings.allow_leaky_split:
        raise UserError("--allow-leaky-split: under --dp a triple that is there twice would count twice")
    if settings.privacy is not None and settings.privacy.counts:
        return
    least = 1 if strategy.shared is None else 2
    if settings.rounds < least:
        raise UserError(f"--rounds must be at least {least} under --dp: in the first one nothing is trained")
