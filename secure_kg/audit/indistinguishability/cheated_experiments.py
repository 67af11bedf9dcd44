"""Views of an active server that cheats, real and simulated, on the fixed inputs of `experiments`.

The first sum is as it should be. In the second one the server lies: one client is told a forged mask key, or a share is
changed on its way to it, or clients are told two different sets of survivors. Whoever notices refuses. All that the
server sees of it, the refusal included, must be what somebody could have written without its input.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from protocols.foundation.identifiers import PartyId, new_session
from protocols.ideal.cheated import CheatedSums
from protocols.ideal.cheating import (
    Cheat,
    CheatedSumSession,
    FlippedShares,
    ForgedMaskKey,
    TwoSurvivorSets,
    signed_parties,
)
from protocols.ideal.views import View
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from secure_kg.audit.indistinguishability.experiments import (
    CLIENTS,
    Experiment,
    KnownSum,
    encoded,
    fixed_sums,
    total_of,
)

ACTIVE: Final = ThreatModel(0.25, 0.25, "active")
"""For five clients: one corrupt, one silent, threshold four."""
VICTIM: Final = PartyId(1)
FORGED: Final = ForgedMaskKey(VICTIM, owner=PartyId(2))
CHANGED: Final = FlippedShares(VICTIM, owner=PartyId(2))
DIVIDED: Final = TwoSurvivorSets(told=frozenset({PartyId(4), PartyId(5)}), missing=PartyId(3))


def forged_keys(seed: int) -> Experiment:
    """The victim notices at once and leaves; the others' sum is opened."""
    return _cheated("cheated-keys", seed, FORGED, {VICTIM: Step.MASKED_INPUT})


def changed_shares(seed: int) -> Experiment:
    """The victim refuses before it gives an input, and names the sender; the others' sum is opened."""
    return _cheated("cheated-shares", seed, CHANGED, {VICTIM: Step.MASKED_INPUT})


def two_survivor_sets(seed: int) -> Experiment:
    """All have uploaded, all notice, and nothing is opened."""
    return _cheated("cheated-survivors", seed, DIVIDED, None)


def _cheated(name: str, seed: int, cheat: Cheat, missing: Mapping[PartyId, Step] | None) -> Experiment:
    """`missing`: who is not in the second sum; None if that is not opened."""
    parties = signed_parties(CLIENTS, ACTIVE)
    (first, before), (second, after) = sums = fixed_sums(seed)
    total, rest = total_of(before, {}), None if missing is None else total_of(after, missing)

    def simulate() -> View:
        simulated = CheatedSums(parties.clients, ACTIVE, new_session(), credentials=parties.credentials)
        simulated.setup()
        simulated.masked_sum(first, total)
        simulated.cheated_sum(second, cheat, rest, done=first.round)
        return simulated.view()

    known = [KnownSum(terms, encoded(inputs), model=ACTIVE) for terms, inputs in sums]
    known[0] = replace(known[0], total=total)
    return Experiment(name, CheatedSumSession(parties, sums, cheat), simulate, lambda view: known)


CHEATED: Final[dict[str, Callable[[int], Experiment]]] = {
    "cheated-keys": forged_keys,
    "cheated-shares": changed_shares,
    "cheated-survivors": two_survivor_sets,
}
"""Of every lie the comparison in which real and simulated views must not be told apart."""
