"""One client's tools in a session of questions: keys, budgets, and a client of every protocol that a question needs."""

from dataclasses import dataclass

from protocols.exact.client import ExactClient
from protocols.foundation.deadline import Deadline
from protocols.holders.secret import SecretHolderClient
from protocols.lookups.names import NamesClient
from protocols.lookups.vectors import VectorBudget
from protocols.scores.budget import Budget, MemoryRecord
from protocols.scores.covering import Covering, CoverRecord, Kept, MemoryCovers
from protocols.scores.interface import ScoreClient
from protocols.scores.masked import MaskedScoreClient
from protocols.scores.topk.hidden_batches import HiddenScoreClient
from protocols.scores.topk.hidden_parties import HiddenClient
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.credentials import Credentials
from protocols.session.group_key import GroupKey
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.terms import PlannedStep, PublicTerms


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a client lets be opened. None: nothing is counted."""

    atoms: VectorBudget | None = None
    means: Budget | None = None
    exact: Budget | None = None

    @property
    def covers(self) -> CoverRecord:
        """Where it is kept over which clients anything is opened, whatever the step and the model; with nothing
        counted, in this session only."""
        kept = self.atoms or self.means
        return MemoryCovers() if kept is None else kept.record


@dataclass(frozen=True, slots=True)
class Guards:
    """Against whom a client stands, how long it waits, and what it counts."""

    model: ThreatModel
    seconds: float
    """For one step."""
    budgets: Budgets = Budgets()
    credentials: Credentials | None = None


class Tools:
    """After the set-up of a session, which makes keys between all clients."""

    def __init__(self, public: PublicTerms, knowledge: Knowledge, conversation: Conversation, guards: Guards) -> None:
        self.public, self.knowledge = public, knowledge
        self._conversation, self._seconds = conversation, guards.seconds
        self.signed = guards.model.server == "active"
        channels = VectorClient(public.clients, guards.model, credentials=guards.credentials)
        self._keys = ClientKeys.agree(self.session, channels)
        budgets, covers, whole = guards.budgets, guards.budgets.covers, public.needs_all
        self._covering = Covering(Kept(covers, together=True), whole=whole)
        atoms = (budgets.atoms or _uncounted()).within(covers, whole=whole)
        self.vectors = MaskedScoreClient(channels, self._holders, atoms)
        self.names = NamesClient(channels, self._covering)
        self.exact = ExactClient(channels, budgets.exact, self._covering)
        # What opens no means has no place among those that are counted.
        means = budgets.means if public.bundle.has_budget else None
        self.scores = public.bundle.client(self._keys, (means or _uncounted()).within(covers, whole=whole))

    @property
    def key(self) -> GroupKey:
        """That all clients have, and the server has not."""
        return self._keys.key

    @property
    def session(self) -> ClientSession:
        """For the next step, which may take its time from now on."""
        return ClientSession(self._conversation, Deadline.after(self._seconds))

    def hidden(self, step: PlannedStep) -> ScoreClient:
        """Mask the tables for a hidden batch; what is returned then asks or scores it."""
        if step.shape is None:
            raise ValueError("a step without hidden queries")
        made = HiddenClient(self._keys.vectors, self._holders, step.tables, self._covering)
        made.begin(self.session, self.knowledge.hidden_table())
        return HiddenScoreClient(made, step.shape)

    @property
    def _holders(self) -> SecretHolderClient:
        return SecretHolderClient(self._keys.vectors, self._keys.key)


def _uncounted() -> Budget:
    """Of a client that counts nothing: it minds over whom sums are opened all the same."""
    return Budget(MemoryRecord(), 0, allow_extraction=True)
