"""Real and simulated views of encrypted scores, on fixed scores: the server's, and that of the server with the asker.

Scores, clients and dropouts are those of masked scores (`score_experiments`). Paillier keys have 1024 bits, as in
tests: too short to be safe, and short enough for thousands of sessions. What is compared does not depend on the length.
With the asker, ciphertexts are decrypted first, and what comes out is looked at as the uploads of a masked sum.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.ideal.ciphertext_features import bfv_features, paillier_features
from protocols.ideal.encrypted_scores import (
    KeptKeys,
    MakeScheme,
    OpenedSession,
    SimulatedAsker,
    encrypted_session,
    encrypted_terms,
    simulate_encrypted_scores,
    with_plaintexts,
    with_zeros,
)
from protocols.ideal.masked_sum import Silences
from protocols.ideal.real import Falls
from protocols.ideal.scores import KnownBatch
from protocols.ideal.views import View
from protocols.scores.encrypted import bfv, paillier
from protocols.scores.encrypted.bfv import BfvScheme
from protocols.scores.encrypted.messages import EncryptedScores
from protocols.scores.encrypted.paillier import PaillierScheme
from protocols.scores.encrypted.paillier_keys import KeySize
from protocols.scores.encrypted.scheme import Scheme
from protocols.scores.interface import encode
from protocols.scores.messages import PURPOSE
from protocols.sums.secagg.server import Step
from secure_kg.audit.indistinguishability.experiments import Experiment, KnownSum, Vector
from secure_kg.audit.indistinguishability.score_experiments import (
    FALLS,
    LAST,
    SCORING,
    new_simulation,
    scoring_batches,
)
from secure_kg.audit.indistinguishability.view_features import Features, features_of

SHORT_KEYS: Final = KeySize(1024, for_tests=True)


@dataclass(frozen=True)
class _Encrypted:
    """Batches under one cipher."""

    name: str
    make: MakeScheme
    todo: Sequence[KnownBatch] = field(repr=False)
    of_ciphertexts: Callable[[View], Features] = field(repr=False)

    def server(self) -> Experiment:
        """The server alone."""
        scheme = self.make()
        known = [KnownSum(encrypted_terms(one.terms, scheme), model=SCORING.model) for one in self.todo]

        def more(view: View) -> Features:
            correction = features_of(with_zeros(view, self.todo, scheme), known)
            named = {f"correction, {name}": value for name, value in correction.items() if name.startswith("sum ")}
            return self.of_ciphertexts(view) | named

        kept = KeptKeys()
        session = encrypted_session(SCORING, self.todo, self.make, _falls(), kept)
        return Experiment(self.name, session, lambda: self._simulated(kept, {}), lambda view: [], more)

    def with_asker(self) -> Experiment:
        """The server with the asker."""
        scheme, kept = self.make(), KeptKeys()
        inputs = [_inputs(one, scheme) for one in self.todo]
        totals = {
            one.terms.round: _total(one, scheme, of_batch) for one, of_batch in zip(self.todo, inputs, strict=True)
        }
        known = [
            KnownSum(encrypted_terms(one.terms, scheme), of_batch, totals[one.terms.round], model=SCORING.model)
            for one, of_batch in zip(self.todo, inputs, strict=True)
        ]

        def read(view: View) -> View:
            return with_plaintexts(view, self.todo, scheme, kept)

        session = OpenedSession(encrypted_session(SCORING, self.todo, self.make, _falls(), kept), read)
        return Experiment(
            f"{self.name}-asker", session, lambda: read(self._simulated(kept, totals)), lambda view: known
        )

    def _simulated(self, kept: KeptKeys, totals: Mapping[RoundId, Vector]) -> View:
        """`totals`: over the contributors, by round; empty without the asker."""
        simulated, asker = new_simulation(SCORING), SimulatedAsker(self.make(), SCORING.clients)
        kept[asker.key.public] = asker.key
        for one in self.todo:
            total = totals.get(one.terms.round)
            simulate_encrypted_scores(simulated, one.terms, len(one.queries), asker, total, _silent(one))
        return simulated.view()


def _falls() -> Falls:
    return Falls({(LAST, PURPOSE): FALLS}, EncryptedScores)


def _silent(batch: KnownBatch) -> Silences:
    return FALLS if batch.terms.round == LAST else {}


def _inputs(batch: KnownBatch, scheme: Scheme) -> dict[PartyId, Vector]:
    layout = encrypted_terms(batch.terms, scheme).layout
    return {party: layout.vector(encode(batch.scores[party], batch.terms)) for party in batch.terms.scorers}


def _total(batch: KnownBatch, scheme: Scheme, inputs: Mapping[PartyId, Vector]) -> Vector:
    layout = encrypted_terms(batch.terms, scheme).layout
    total = layout.group.zeros(layout.entries)
    for party, vector in inputs.items():
        if _silent(batch).get(party) is not Step.MASKED_INPUT:
            layout.group.add_into(total, vector)
    return total


def _paillier(seed: int) -> _Encrypted:
    scheme = PaillierScheme(SHORT_KEYS)
    return _Encrypted(
        "scores-paillier",
        lambda: PaillierScheme(SHORT_KEYS),
        scoring_batches(seed),
        lambda view: paillier_features(view, scheme),
    )


def _bfv(seed: int) -> _Encrypted:
    scheme = BfvScheme()
    return _Encrypted("scores-bfv", BfvScheme, scoring_batches(seed), lambda view: bfv_features(view, scheme))


ENCRYPTED_PROTOCOLS: Final[dict[str, Callable[[int], Experiment]]] = {
    "scores-paillier": lambda seed: _paillier(seed).server(),
    "scores-paillier-asker": lambda seed: _paillier(seed).with_asker(),
    "scores-bfv": lambda seed: _bfv(seed).server(),
    "scores-bfv-asker": lambda seed: _bfv(seed).with_asker(),
}
"""As `experiments.PROTOCOLS`, for encrypted scores."""
ENCRYPTED_PACKAGES: Final = {
    name: paillier.PACKAGES if "paillier" in name else bfv.PACKAGES for name in ENCRYPTED_PROTOCOLS
}
"""What they need beyond the project's requirements."""
