"""Disclosures: structured statements of what a protocol tells whom, written once, next to the protocol.

Every table and sentence about a protocol is rendered from its disclosure: the documents, `--help`, the last lines of a
run, its report, and the declarations that an audit compares a transcript with.

Words may have slots, which a run fills in (`SLOTS`). A disclosure that is incomplete, or has other slots, is refused
when it is made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from string import Formatter
from typing import Final, Literal

from protocols.foundation import wire

FieldClass = Literal["public", "ciphertext", "masked", "aggregate", "clear"]
CLASSES: Final[tuple[FieldClass, ...]] = ("public", "ciphertext", "masked", "aggregate", "clear")

NOTHING: Final = "nothing"
WHETHER_BEST: Final = "after each evaluation, whether it was the best so far"
"""What early stopping tells everybody who cannot read the metrics."""
WHAT_MEANS_SHOW: Final = (
    "which rows were averaged; of each of them, its own or another by position, how many contributed: its digits are "
    "multiples of one part in so many (with --ring-bits up to 24 means are rounded, and their digits do not show it)"
)
"""To whoever gets means in single precision, of how many holders a row is."""
SLOTS: Final = {
    "shared": "which rows are shared: relation or entity",
    "least": "how many holders a row must have to be added up",
    "others": "one less than `least`",
    "trust": "what is expected of the server",
    "lost": "what fixed-point encoding lost",
}
"""What a run fills into words."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message as the server sees it; `meaning` completes the sentence "the server saw ...".

    public      settings, public keys, signatures, who is there: of no client's data
    ciphertext  encrypted for a client; the server carries it
    masked      uniform to whoever lacks the masks, or a share of a secret that opens nothing by itself
    aggregate   a sum, a mean or a size over several clients, which the protocol means the server to have
    clear       a single client's own data
    """

    field_class: FieldClass
    meaning: str


Fields = Mapping[type[wire.Message], Mapping[str, Field]]
"""The messages of a protocol, and each field of each of them."""


class Subject(Enum):
    """Something that a party may learn about. The value is its heading."""

    ROWS = "values of {shared} rows"
    RARE_ROWS = "values of rows held by fewer than {least} clients"
    NAMES = "{shared} names"
    OBJECTIONS = "objections to the alignment"
    HOLDERS = "how many hold a row"
    METRICS = "validation and test metrics"
    PARTICIPATION = "participation in sums"
    COMMON_KEY = "the clients' common key"
    SCORES = "scores of positions"
    QUERIES = "queries"
    ANSWERS = "answers"
    FACTS = "stored facts"

    @property
    def of_shared_rows(self) -> bool:
        """Whether there is nothing to learn of it where clients share no rows."""
        return self in (Subject.ROWS, Subject.RARE_ROWS, Subject.NAMES, Subject.OBJECTIONS, Subject.HOLDERS)


@dataclass(frozen=True, slots=True)
class Learned:
    """What the server and another client learn about one subject, in words that follow its heading.

    `asker`: where one party asks and the others answer, what that party learns.
    """

    server: str = NOTHING
    client: str = NOTHING
    asker: str = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What one protocol reveals, to whom, under which assumptions."""

    title: str
    """The protocol in a few words, in the plural or with its article, e.g. "secret sums"."""
    place: str
    """Its module or package below `protocols`, with slashes."""
    choice: str
    """For `--help`, after the name of the choice. Empty: not a choice of its own."""
    in_brief: str
    """One line at the end of a run. Empty: not a choice of its own."""
    learned: Mapping[Subject, Learned]
    against: str
    """Against whom it stands."""
    with_a_client: str
    """What the server learns together with a client on its side, beyond what each of them learns."""
    assumes: str
    not_covered: str
    changing_clients: str = ""
    """What sums over different sets of clients add to what the server learns; empty: nothing."""
    fields: Fields = field(default_factory=dict, repr=False)
    """Its messages, and what the server sees in them."""
    signed_fields: Fields = field(default_factory=dict, repr=False)
    """Messages that it has against an active server only."""

    def __post_init__(self) -> None:
        for name in ("title", "place", "against", "with_a_client", "assumes", "not_covered"):
            if not getattr(self, name).strip():
                raise ValueError(f"a disclosure without '{name}'")
        if not self.learned:
            raise ValueError(f"the disclosure of {self.title} does not say what anybody learns")
        if bool(self.choice) != bool(self.in_brief):
            raise ValueError(f"the disclosure of {self.title} has words for --help or for the end of a run, not both")
        for words in self._all_words():
            if unknown := slots_of(words) - SLOTS.keys():
                raise ValueError(f"the disclosure of {self.title} has an unknown slot: {min(unknown)}")
        for message, named in {**self.fields, **self.signed_fields}.items():
            if set(named) != set(message.__struct_fields__):
                raise ValueError(f"the disclosure of {self.title} does not declare every field of {message.__name__}")

    def _all_words(self) -> Iterable[str]:
        yield from (self.choice, self.in_brief, self.changing_clients)
        for told in self.learned.values():
            yield from (told.server, told.client, told.asker)


def slots_of(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name is not None}


def learned(disclosures: Iterable[Disclosure], subject: Subject) -> Learned | None:
    """What parties learn about a subject from several protocols together; None if none of them speaks of it."""
    told = [one.learned[subject] for one in disclosures if subject in one.learned]
    if not told:
        return None
    return Learned(
        _joined(one.server for one in told), _joined(one.client for one in told), _joined(one.asker for one in told)
    )


def _joined(words: Iterable[str]) -> str:
    parts = (part for one in words if one != NOTHING for part in one.split("; "))
    return "; ".join(dict.fromkeys(parts)) or NOTHING
