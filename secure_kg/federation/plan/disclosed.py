"""Disclosures of one run: those of the protocols that it uses, with its own figures filled in."""

from collections.abc import Sequence
from dataclasses import dataclass

from protocols.bundles import Aggregation, Alignment
from protocols.foundation.disclosure import Disclosure, Learned, Subject, learned
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from protocols.session.disclosure import GROUP_KEY
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.recorded import RecordedBlock, RecordedSettings
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES


@dataclass(frozen=True, slots=True)
class Statement:
    """What parties learn about one subject in one run, in words."""

    subject: Subject
    heading: str
    server: str
    client: str


@dataclass(frozen=True, slots=True)
class Disclosed:
    """What the protocols of a run tell whom."""

    shared: str | None
    """What is shared, in a word; None: nothing."""
    sums: Aggregation
    alignment: Alignment
    reveal_names: bool
    least_holders: int
    rows: Aggregation | None
    """Of the block whose rows stand under names; None: no names are aligned."""
    other_sums: tuple[Aggregation, ...] = ()
    """Of blocks that have an aggregation of their own."""

    @classmethod
    def of(cls, config: RunConfig) -> "Disclosed":
        blocks = RunPlan(config, config.clients or 1).blocks
        return cls(
            _in_a_word(blocks),
            config.sum_protocol,
            config.alignment_protocol,
            config.reveal_names,
            config.least_holders,
            _of_rows(blocks),
            _others(config.aggregation, blocks),
        )

    @classmethod
    def of_summary(cls, settings: RecordedSettings) -> "Disclosed":
        """`settings`: those in a summary."""
        blocks: Sequence[Block | RecordedBlock] = settings.blocks or ()
        shared = STRATEGIES[settings.strategy].shared
        if settings.blocks is None and shared is not None:
            blocks = [RecordedBlock(name=shared, aligned=True, aggregation=settings.aggregation)]
        return cls(
            _in_a_word(blocks),
            AGGREGATIONS[settings.aggregation],
            ALIGNMENTS[settings.alignment],
            settings.reveal_names,
            settings.min_holders,
            _of_rows(blocks),
            _others(settings.aggregation, blocks),
        )

    @property
    def aligned(self) -> bool:
        """Whether names are aligned."""
        return self.rows is not None

    @property
    def of_alignment(self) -> tuple[Disclosure, ...]:
        """Nothing where no names are aligned."""
        return self.alignment.disclosures(self.reveal_names) if self.aligned else ()

    @property
    def of_count(self) -> tuple[Disclosure, ...]:
        """Nothing where rows of any number of holders are added up."""
        return (self.rows.count.disclosure,) if self.rows is not None and self.least_holders > 1 else ()

    @property
    def has_keys(self) -> bool:
        aligned = self.alignment.needs_keys and self.aligned
        return aligned or any(one.needs_keys for one in (self.sums, *self.other_sums))

    @property
    def all(self) -> tuple[Disclosure, ...]:
        """Of every protocol that the run uses."""
        others = tuple(one.disclosure for one in self.other_sums)
        keys = (GROUP_KEY,) if self.has_keys else ()
        return (self.sums.disclosure, *others, *self.of_count, *self.of_alignment, *keys)

    def fill(self, words: str, **more: str) -> str:
        """The words with the figures of this run in their slots."""
        least = self.least_holders
        return words.format_map({"shared": self.shared or "", "least": least, "others": least - 1, **more})

    def statements(self) -> list[Statement]:
        """What parties learn, subject by subject."""
        told = [(subject, learned(self.all, subject)) for subject in Subject]
        return [
            self._statement(subject, words)
            for subject, words in told
            if words is not None and (self.shared is not None or not subject.of_shared_rows)
        ]

    def _statement(self, subject: Subject, words: Learned) -> Statement:
        return Statement(subject, *map(self.fill, (subject.value, words.server, words.client)))

    def with_a_client(self) -> list[str]:
        """Per protocol: what a client on the server's side opens to it."""
        return [f"{one.title}: {one.with_a_client}" for one in self.all]


def _in_a_word(blocks: Sequence[Block | RecordedBlock]) -> str | None:
    """The aligned block by its name, or all of them."""
    aligned = [block.name for block in blocks if block.aligned]
    return " and ".join(aligned or [block.name for block in blocks]) or None


def _of_rows(blocks: Sequence[Block | RecordedBlock]) -> Aggregation | None:
    return next((AGGREGATIONS[block.aggregation] for block in blocks if block.aligned), None)


def _others(aggregation: str, blocks: Sequence[Block | RecordedBlock]) -> tuple[Aggregation, ...]:
    names = dict.fromkeys(block.aggregation for block in blocks if block.aggregation != aggregation)
    return tuple(AGGREGATIONS[name] for name in names)
