"""The script of a run: who takes part in a round, which sums there are, in which layout, and what is due when.

Pure: every party computes it from its own settings and from public state (the session, the union that was aligned).
Client, server, audit, attacks and byte counts ask the plan; nothing else computes any of it, and no party takes
another one's word for it. What only a client knows of a sum (its model digest, its state) it adds itself.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from protocols.alignment.interface import Union
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu import vote as union_vote
from protocols.alignment.psu.attempts import Attempt
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.interface import CountTask
from protocols.holders.plain import count_terms as clear_count
from protocols.registry import AGGREGATIONS
from protocols.sums.interface import SumLayout
from protocols.sums.noises import noise_of
from protocols.sums.secagg.params import SumParameters
from protocols.sums.terms import Layout, SumTerms
from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.plan.blocks import AGREEING_ROUND as AGREEING_ROUND
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.count_plan import plan_of
from secure_kg.federation.plan.learners import LearnerKind
from secure_kg.federation.plan.private_plan import PrivatePlan
from secure_kg.federation.plan.row_sum import row_layout
from secure_kg.federation.plan.sampling import participants
from secure_kg.federation.plan.settings import SETUP_SECONDS, RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Strategy, learner_of

UNION: Final = "union/"
"""Purposes of the sums of a private set union begin with this."""
PRIVATE_LEARNER: Final = "secure_kg.federation.client.private_learner:make_learner"
COUNT_LEARNER: Final = "secure_kg.federation.client.count_learner:make_learner"
RESULTS: Final = ("valid", "test")
"""Purposes of the sums of results, by the part of the data that they are of."""


@dataclass(frozen=True, slots=True)
class PublicState:
    """What a run has made public so far, beside its settings."""

    session: SessionId | None = None
    commitment: bytes = b""
    """To the clients' group key."""
    union: Union | None = None


@dataclass(frozen=True, slots=True)
class PlannedSum:
    """One sum of a run by its round and purpose, whichever protocol makes it."""

    terms: SumTerms[Layout] | None
    """Of the vectors that are added under masks; None for a sum in clear."""
    layout: SumLayout | None = None
    """How its total is read as numbers, where it is one of numbers."""
    attempt: Attempt | None = None
    """Of a private set union: how its table is read."""
    read_by_server: bool = False
    """Of a sum of numbers: whether the server reads its total."""


class RunPlan:
    """The script of one run with `clients` clients."""

    def __init__(self, settings: RunConfig, clients: int) -> None:
        self.settings = settings
        self.clients = tuple(PartyId(number) for number in range(1, clients + 1))
        self._participants = lru_cache(maxsize=1024)(self._drawn)

    # --- what is shared ---

    @property
    def strategy(self) -> Strategy:
        return STRATEGIES[self.settings.strategy]

    @property
    def learner(self) -> LearnerKind:
        kind, privacy = learner_of(self.settings), self.settings.privacy
        return kind if privacy is None else kind.made_by(COUNT_LEARNER if privacy.counts else PRIVATE_LEARNER)

    @cached_property
    def private(self) -> PrivatePlan | None:
        """Of a run that is differentially private."""
        return None if self.settings.privacy is None else plan_of(self.settings, self.strategy)

    @property
    def least_participants(self) -> int:
        """How many clients must be in a sum."""
        least = self.settings.min_participants
        return least if self.private is None else max(least, self.private.least_contributors)

    @property
    def least_present(self) -> int:
        """How many clients must be there for a run to go on."""
        if not self.masks_sums:
            return self.settings.min_participants
        parameters = self.parameters(len(self.clients))
        return max(parameters.min_survivors, parameters.least_present)

    @property
    def metrics(self) -> type[Metrics]:
        """How results are summed."""
        return self.learner.metrics_of(self.settings)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The shared blocks, in the order in which a round adds them up.

        `UserError` if the sums of one do not stand against the declared adversary: a block brings its own aggregation.
        """
        blocks = self.learner.blocks(self.settings, self.strategy)
        if sum(block.aligned for block in blocks) > 1 or len({block.name for block in blocks}) < len(blocks):
            raise ValueError(f"strategy {self.strategy.name}: blocks have different names, and one at most is aligned")
        for block in blocks:
            self.settings.require_standing(block.aggregation, block.name)
        return blocks

    @property
    def aligned_block(self) -> Block | None:
        """The block whose rows stand under names; None if nothing is aligned."""
        return next((block for block in self.blocks if block.aligned), None)

    @property
    def aggregations(self) -> tuple[str, ...]:
        """Names of the aggregations in use, each once: that of results first, then those of the blocks."""
        return tuple(dict.fromkeys([self.settings.aggregation, *(block.aggregation for block in self.blocks)]))

    @property
    def counted_by(self) -> str:
        """The aggregation whose count of holders the run uses: that of the aligned rows, which the count is for."""
        return self.settings.aggregation if self.aligned_block is None else self.aligned_block.aggregation

    # --- who, and when ---

    def participants(self, round_id: int) -> tuple[PartyId, ...]:
        """The clients that are drawn for a round, in ascending order."""
        return self._participants(int(round_id))

    def _drawn(self, round_id: int) -> tuple[PartyId, ...]:
        settings = self.settings
        fraction, least = settings.client_fraction, settings.min_participants
        return participants(self.clients, fraction, least, settings.seed, RoundId(round_id))

    @property
    def client_seconds(self) -> float:
        """How long a client waits for a message.

        It waits for the slowest of the others, in starting up, training and evaluation. The server notices a dropout
        much sooner, and a server that has died takes the job with it.
        """
        return SETUP_SECONDS + 2 * self.settings.eval_every * self.settings.deadline

    @property
    def needs_keys(self) -> bool:
        """Whether clients need channels to each other: for sums of results or of a block, or for the alignment."""
        return self.masks_sums or (self.aligned_block is not None and self.settings.alignment_protocol.needs_keys)

    @property
    def masks_sums(self) -> bool:
        """Whether any sum of results or of a block needs keys: such a sum has a threshold."""
        return any(AGGREGATIONS[name].needs_keys for name in self.aggregations)

    def trains(self, round_id: int) -> bool:
        """Whether clients train in a round, or only agree on first rows."""
        return round_id != AGREEING_ROUND or not any(block.agrees for block in self.blocks)

    def evaluation_due(self, round_id: int) -> bool:
        """Whether a round is followed by an evaluation. In a private run only if evaluation triples are public."""
        settings = self.settings
        if settings.privacy is not None and not settings.privacy.public_evaluation:
            return False
        return 0 < round_id <= settings.rounds and (round_id % settings.eval_every == 0 or round_id == settings.rounds)

    @property
    def tells_test_results(self) -> bool:
        """Whether clients add up test results. In a private run only if evaluation triples are public."""
        return self.settings.privacy is None or self.settings.privacy.public_evaluation

    def checkpoint_due(self, round_id: int, *, over: bool) -> bool:
        """Whether a round is followed by a checkpoint. `over`: it was the last one."""
        every = self.settings.checkpoint_every
        return every > 0 and (round_id % every == 0 or over)

    @staticmethod
    def results_round(done: int) -> RoundId:
        """Results are a step of their own, so that no mask of a training round is used again."""
        return RoundId(done + 1)

    # --- the sums ---

    def rows(self, round_id: int, block: Block, union: Union) -> SumTerms[SumLayout]:
        """The sum of a block's rows in a round."""
        layout = self.row_layout(block, union.size)
        return SumTerms(RoundId(round_id), block.purpose, self.participants(round_id), layout)

    def row_layout(self, block: Block, rows: int) -> SumLayout:
        settings = self.settings
        noise, bound = noise_of(block.noise), settings.clip if block.bound is None else block.bound
        layout = row_layout(rows, block.width, bound, len(self.clients), settings.ring_bits, noise)
        noise.require_room(layout.codec)
        return layout

    def count(self, round_id: int, block: Block, union: Union) -> CountTask | None:
        """The count of holders before the sum of rows; None where rows of any number of holders may be added up."""
        least = self.settings.least_holders
        if least < 2 or not block.aligned or block.public:
            return None
        return CountTask(RoundId(round_id), self.participants(round_id), union.size, union.digest, least)

    def least_contributors(self, block: Block) -> int:
        """How many clients must have added a row that is in a sum."""
        if block.public:
            return self.least_participants
        return self.settings.least_holders if block.aligned else 1

    def results(self, round_id: int, part: str) -> SumTerms[SumLayout]:
        """The sum of results on one part of the data: over all clients, drawn or not."""
        return SumTerms(RoundId(round_id), part, self.clients, self.result_layout())

    def result_layout(self) -> SumLayout:
        return self.metrics.layout(len(self.clients))

    def union_attempt(self, number: int, public: PublicState) -> Attempt:
        """One attempt at the private set union."""
        if public.session is None:
            raise ProtocolError("there is no session yet")
        return Attempt.of(number, self.settings.first_union_bound, public.session, public.commitment)

    def parameters(self, participants: int) -> SumParameters:
        """Graph and threshold of a masked sum over so many of the clients."""
        return self.settings.sum_parameters(participants, len(self.clients))

    @property
    def sees_survivors(self) -> bool:
        """Whether each client sees all survivors of a sum of results: in a sparse graph it sees its neighbours only."""
        return not self.settings.sum_protocol.needs_keys or self.parameters(len(self.clients)).complete

    def expected(self, round_id: int, purpose: str) -> frozenset[PartyId]:
        """The clients that a sum is over."""
        everybody = purpose in (*RESULTS, union_names.PURPOSE, union_vote.PURPOSE) or purpose.startswith(UNION)
        return frozenset(self.clients if everybody else self.participants(round_id))

    def sum_of(self, round_id: int, purpose: str, public: PublicState) -> PlannedSum:
        """Any sum of the run by round and purpose. `ProtocolError` if the run has no such sum."""
        if purpose.startswith(UNION):
            attempt = self.union_attempt(_number(purpose.removeprefix(UNION)), public)
            return PlannedSum(attempt.terms(self.clients), attempt=attempt)
        if purpose in RESULTS:
            return self._of_numbers(self.results(round_id, purpose), self.settings.aggregation)
        for block in self.blocks:
            if purpose == block.purpose:
                union = self.union_of(block, public)
                return self._of_numbers(self.rows(round_id, block, union), block.aggregation)
        if self.aligned_block is None:
            raise ProtocolError(f"a sum of '{purpose}', of which the protocols know nothing")
        return self._of_alignment(round_id, purpose, self.aligned_block, public)

    @staticmethod
    def union_of(block: Block, public: PublicState) -> Union:
        """The rows of a block: those of the alignment, or the one row that needs none."""
        if not block.aligned:
            return block.fixed_union
        if public.union is None:
            raise ProtocolError("the record does not say how large the union is")
        return public.union

    def _of_alignment(self, round_id: int, purpose: str, block: Block, public: PublicState) -> PlannedSum:
        union = self.union_of(block, public)
        if purpose == HOLDERS and (counting := self.count(round_id, block, union)) is not None:
            if (masked_terms := AGGREGATIONS[self.counted_by].count.masked_terms) is None:
                return PlannedSum(None, clear_count(counting).layout)
            return PlannedSum(masked_terms(counting))
        if purpose == union_names.PURPOSE:
            return PlannedSum(union_names.names_terms(self.clients, union.size, union.digest))
        if purpose == union_vote.PURPOSE:
            return PlannedSum(union_vote.vote_terms(self.clients, union.digest))
        raise ProtocolError(f"a sum of '{purpose}', of which the protocols know nothing")

    @staticmethod
    def _of_numbers(terms: SumTerms[SumLayout], aggregation: str) -> PlannedSum:
        protocol = AGGREGATIONS[aggregation]
        return PlannedSum(protocol.masked_terms(terms), terms.layout, read_by_server=not protocol.sealed)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ProtocolError(f"an attempt at the union that is no number: '{text}'")
    return int(text)
