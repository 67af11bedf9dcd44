"""Nothing that hides a value may be used twice: masks, keys, seeds, commitments, ciphertexts.

A mask used twice shows in the difference of the two uploads, which is then what the client's values have changed by;
under fresh masks it is uniform.
"""

import numpy as np

from protocols.session.group_key import SealedGroupKeys
from protocols.session.messages import AdvertiseChannel
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys
from secure_kg.audit.checks.uniformity import in_field
from secure_kg.audit.view.elements import elements
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Finding, GradedEvidence
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.statistics import ALARM, Words, difference, odd_p
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class Reuse(Check):
    id = "mask-reuse"
    question = "Was a mask, a key, a seed or a ciphertext used more than once?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._last: dict[tuple[int, str], tuple[int, Words]] = {}
        self._first_seen: dict[tuple[str, bytes], tuple[str, bool]] = {}
        """Where a value came first, and whether the server went by it."""
        self._pairs = self._session = 0
        self._masks, self._values = GradedEvidence(), GradedEvidence()

    def begin_session(self) -> None:
        self._session += 1

    def observe(self, observation: Observation) -> None:
        self._look(observation, heard=True)

    def ignored(self, observation: Observation) -> None:
        """What the server drops it has seen."""
        self._look(observation, heard=False)

    def unasked(self, observation: Observation) -> None:
        """A key of a sum that did not come is of no other sum. The server has it, and has not gone by it."""
        self._look(observation, heard=False)

    def _look(self, observation: Observation, heard: bool) -> None:
        if observation.direction != "received":
            return
        message = observation.message
        where = self._where(observation.peer, observation.round, observation.purpose)
        for kind, value in _single_use(observation):
            self._note(kind, value, where, heard)
        if isinstance(message, MaskedInput):
            self._compare(observation, message, where, heard)

    def opened(self, total: OpenedSum) -> None:
        for party, seed in total.seeds.items():
            self._note("self-mask seed", seed, self._where(party, total.round, total.purpose), heard=True)
        for party, secret in total.mask_keys.items():
            self._note("mask key", secret, self._where(party, total.round, total.purpose), heard=True)

    def _where(self, party: int, number: int, purpose: str) -> str:
        again = f", session {self._session}" if self._session > 1 else ""
        return f"client {party}, round {number}{f', {purpose}' if purpose else ''}{again}"

    def _note(self, kind: str, value: bytes, where: str, heard: bool) -> None:
        earlier, counted = self._first_seen.setdefault((kind, value), (where, heard))
        if earlier != where:
            self._values.add(f"{kind} of {earlier} again: {where}", heard=heard and counted)
        if heard and not counted:
            self._first_seen[kind, value] = where, True

    def _compare(self, observation: Observation, message: MaskedInput, where: str, heard: bool) -> None:
        """With the client's previous upload for the same purpose, of the same or another attempt.

        What the server has dropped is compared, and nothing is compared with it.
        """
        purpose = message.purpose.split("/")[0]
        words, bits = elements(message.vector, self.config)
        field, key = self._in_field(observation), (observation.peer, f"{purpose}/{words.dtype}")
        last = self._last.get(key)
        if heard:
            self._last[key] = observation.round, words
        if last is None or len(last[1]) != len(words):
            return
        left = difference(words, last[1], field, bits)
        p, zeros = odd_p(left, field, bits), int(np.count_nonzero(left == 0))
        self._pairs += 1
        if p < ALARM:
            equal = f"{zeros} of {len(left)} entries equal"
            told = f"{where}: the difference to round {last[0]} is not uniform (p = {p:.1e}; {equal})"
            self._masks.add(told, heard=heard)

    def _in_field(self, observation: Observation) -> bool:
        return in_field(observation.purpose)

    def findings(self) -> list[Finding]:
        found = []
        if self._masks:
            found.append(
                Finding(
                    "mask-reused",
                    self._masks.severity,
                    "A client used one mask for several uploads",
                    self._masks.told(),
                    "The server subtracts two uploads under the same mask and reads how the client's values changed "
                    f"in between, exactly. Every upload needs a mask of its own. {self._masks.explained}".strip(),
                )
            )
        if self._values:
            found.append(
                Finding(
                    "secret-reused",
                    self._values.severity,
                    "A key, seed, commitment or ciphertext that is to be used once came twice",
                    self._values.told(),
                    f"What recovery opens in one sum then opens another sum as well. {self._values.explained}".strip(),
                )
            )
        return found

    @property
    def seen(self) -> int:
        return len(self._first_seen)

    def looked_at(self) -> str:
        pairs, once = counted(self._pairs, "pair"), len(self._first_seen)
        return f"{pairs} of successive uploads, {once:,} keys, seeds and ciphertexts"


def _single_use(observation: Observation) -> list[tuple[str, bytes]]:
    match observation.message:
        case AdvertiseChannel(channel_key=key):
            return [("channel key", key)]
        case AdvertiseKeys(mask_key=key):
            return [("public mask key", key)]
        case ShareKeys(sealed=sealed, seed_commitment=commitment):
            return [("seed commitment", commitment), *(("encrypted shares", entry) for entry in sealed.values())]
        case SealedGroupKeys(sealed=sealed):
            return [("encrypted group key", entry) for entry in sealed.values()]
    return []
