"""Protocols as bundles: everything the rest of the project asks about one choice, in one object.

A bundle has the two classes of a protocol, who can read its result, what it needs, and its disclosure. Whoever has to
know whether a sum hides something asks the bundle; nothing branches on a protocol's name.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeAlias, TypeVar

from protocols.alignment.interface import Positions, Union
from protocols.foundation import wire
from protocols.foundation.disclosure import Disclosure
from protocols.foundation.errors import UnknownProtocol
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import CountTask, HolderClient, HolderServer
from protocols.scores.budget import Budget
from protocols.scores.interface import Recorded, ScoreClient, ScoreServer
from protocols.scores.standing import require_apart, require_semi_honest
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.interface import Collected, SumClient, SumLayout, SumServer
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.terms import Layout, SumTerms
from protocols.sums.totals import SumTotal

M = TypeVar("M", bound=wire.Message)

Result: TypeAlias = Collected | SumTotal
"""What the server gets of a sum: the numbers, or something for the clients to read."""


class ServerReads(Enum):
    """What the server can read of a sum."""

    CONTRIBUTIONS = "every client's contribution"
    TOTALS = "the total over the contributors, and no single contribution"
    NOTHING = "nothing: clients alone read the total"


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderCount:
    """How the holders of rows are counted before rows are added up."""

    client: Callable[[ClientKeys | None], HolderClient]
    server: Callable[[ServerKeys | None, int], HolderServer]
    """The number: of how few contributors a count is abandoned."""
    masked_terms: Callable[[CountTask], SumTerms[Layout]] | None
    """The count as a masked sum; None: it is made in clear."""
    disclosure: Disclosure


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """How the contributions of clients are added up."""

    name: str
    client: Callable[[ClientKeys | None], SumClient]
    server: Callable[[ServerKeys | None, int], SumServer[Result]]
    """The number: of how few contributors a sum in clear is abandoned."""
    count: HolderCount
    server_reads: ServerReads
    needs_keys: bool
    """Whether clients need channels to each other, and so a threshold of survivors."""
    stands_against_active: bool
    """Whether it holds against a server that breaks the protocol."""
    masked_terms: Callable[[SumTerms[SumLayout]], SumTerms[Layout]] = lambda terms: terms
    """The sum as one of ring vectors: numbers, and whatever is appended to them."""
    extra_entries: Callable[[SumLayout], int] = lambda layout: 0
    """How many entries clients append to their numbers."""
    possible_entries: Callable[[int], tuple[int, ...]] = lambda length: (length,)
    """How many numbers a vector of this length may have."""
    disclosure: Disclosure

    @property
    def hides_contributions(self) -> bool:
        return self.server_reads is not ServerReads.CONTRIBUTIONS

    @property
    def sealed(self) -> bool:
        """Whether clients alone read the totals, which the server keeps and hands on."""
        return self.server_reads is ServerReads.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentTerms:
    """What the parties of an alignment agree on, each from its own configuration."""

    clients: tuple[PartyId, ...]
    bound: int
    """How many names the union may have at first."""
    reveal_names: bool = False
    """Whether the server is told the names of the union afterwards."""


class SaidNext(Protocol):
    """The record of a session, for an audit."""

    def __call__(self, kind: type[M]) -> M | None:
        """What the server said next, if it is a message of this type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How clients find out which of their rows are the same."""

    name: str
    join: Callable[[ClientSession, ClientKeys | None, AlignmentTerms, Collection[str], bytes], Positions]
    """The client's side: session, keys, terms, its names, its commitment to them."""
    serve: Callable[[ServerSession, ServerKeys | None, AlignmentTerms], Union]
    """The server's side: session, keys, terms."""
    server_reads_names: bool
    """Whether the server reads every client's names."""
    needs_keys: bool
    disclosure: Disclosure
    serve_again: Callable[[ServerSession, ServerKeys | None, AlignmentTerms, SaidNext], Union] | None = None
    """The server's side for an audit: its free choices are those of the record, where the protocol allows them. None:
    the server has no choice."""
    revealing: Disclosure | None = None
    """What telling the server the names adds; None: it cannot be asked for."""

    def disclosures(self, reveal_names: bool) -> tuple[Disclosure, ...]:
        """Of a run that does or does not tell the server the names."""
        if not reveal_names:
            return (self.disclosure,)
        if self.revealing is None:
            raise ValueError(f"--alignment {self.name} does not tell the server names of its own accord")
        return self.disclosure, self.revealing


class AskerReads(Enum):
    """What the asker reads of a batch of queries."""

    MEANS = "the mean score of every position"
    POSITIONS = "the best positions, in order"
    NAMES = "names of positions"
    STORED = "the positions that stored facts give"


class MakeScoreClient(Protocol):
    """How a client's part in batches is made."""

    def __call__(self, keys: ClientKeys | None, budget: Budget | None = None) -> ScoreClient:
        """`budget`: of opened means; None: they are not counted. Where positions alone are opened it has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBackend:
    """How the scores of clients become the answers of one of them."""

    name: str
    client: MakeScoreClient
    server: Callable[[ServerKeys | None], ScoreServer]
    asker_reads: AskerReads
    server_reads_scores: bool
    """Whether the server reads single clients' scores."""
    reads_all_with_a_client: bool
    """Whether the server, together with any one client, reads every client's scores."""
    needs_keys: bool
    stands_against_active: bool
    """Whether a server that breaks the protocol is noticed, and reads no more than one that keeps to it."""
    default_least: int
    """How many scorers must hold a position, unless a run says otherwise."""
    packages: tuple[str, ...] = ()
    """Packages beyond the project's own requirements, by the names they are imported under."""
    masked_terms: Callable[[ScoreTerms], SumTerms[Layout]] | None = None
    """The masked sum of a batch, of encrypted scores that of their masks; None: scores are not added up under masks."""
    server_again: Callable[[ServerKeys | None, Recorded], ScoreServer] | None = None
    """The server's program over a record of what it sent, for an audit; None: parts of it pass no recorded wire."""
    own_process: bool = False
    """Whether every party needs a process of its own: some libraries keep one party's state per process."""
    disclosure: Disclosure
    unlimited: Disclosure | None = None
    """What opening means without a limit adds; None: there are no means to open."""
    option: str = ""
    """How people choose it; empty: by `--scores` and its name."""

    @property
    def has_budget(self) -> bool:
        return self.asker_reads is AskerReads.MEANS

    def require_standing(self, model: ThreatModel) -> None:
        """`ParametersRefused` in one line if it does not stand against what a client's configuration declares."""
        if not self.stands_against_active:
            require_semi_honest(model, self.name, self.option)
        if self.reads_all_with_a_client:
            require_apart(model, self.name, self.option)

    def disclosures(self, allow_extraction: bool) -> tuple[Disclosure, ...]:
        """Of a run that does or does not limit how many means are opened."""
        if not allow_extraction:
            return (self.disclosure,)
        if self.unlimited is None:
            raise ValueError(f"--scores {self.name} opens no means: --allow-extraction has no effect")
        return self.disclosure, self.unlimited


B = TypeVar("B", Aggregation, Alignment, ScoreBackend)


class Registry(Mapping[str, B], Generic[B]):
    """Bundles of one kind by name, in the order in which they were registered. An unknown name raises."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._bundles: dict[str, B] = {}

    def register(self, bundle: B) -> B:
        """Make a bundle known under its name. Its disclosure must have words for every place where it is announced."""
        if bundle.name in self._bundles:
            raise ValueError(f"there is an {self._kind} named '{bundle.name}' already")
        if not bundle.disclosure.choice:
            raise ValueError(f"the disclosure of {self._kind} '{bundle.name}' has no words for --help")
        self._bundles[bundle.name] = bundle
        return bundle

    def unregister(self, name: str) -> None:
        """Forget a bundle, e.g. one that a test has registered."""
        del self._bundles[self[name].name]

    def __getitem__(self, name: str) -> B:
        if name not in self._bundles:
            raise UnknownProtocol(f"unknown {self._kind} '{name}': there are {', '.join(self._bundles)}")
        return self._bundles[name]

    def __contains__(self, name: object) -> bool:
        return name in self._bundles

    def __iter__(self) -> Iterator[str]:
        return iter(self._bundles)

    def __len__(self) -> int:
        return len(self._bundles)
