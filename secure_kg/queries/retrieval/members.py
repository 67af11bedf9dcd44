"""Clients of questions over a finished run, each from its own folder, and the session of all of them in one process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from protocols.foundation.identifiers import PartyId
from protocols.scores.budget import Helpers, Standing
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.naming import ascii_quoted
from secure_kg.queries.retrieval.facts import Vocabulary
from secure_kg.queries.retrieval.files import load_knowledge
from secure_kg.queries.retrieval.in_process import hold_session
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.over_run import STEP_SECONDS, RunAsked
from secure_kg.queries.retrieval.parts import Member, Outcome, Session
from secure_kg.queries.retrieval.session import Budgets, Guards
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.runs.key_files import load_credentials, record_folder
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.score_budget import atom_budget_of, budget_of, exact_budget_of


@dataclass(frozen=True, slots=True)
class AskersView:
    """A run as its asker knows it."""

    name: str
    """Of the run's folder."""
    config: RunConfig
    public: PublicTerms
    own: Vocabulary
    others: Mapping[PartyId, Member] = field(default_factory=dict, repr=False)
    """Clients that answer and are loaded in the asker's process; it knows of no others how they keep their budgets."""

    @classmethod
    def of(cls, run: RunAsked, members: Mapping[PartyId, Member]) -> "AskersView":
        """`members`: those of this process, the asker among them."""
        own, others = members[run.asker], {party: one for party, one in members.items() if party != run.asker}
        name = run.path.resolve().name
        return cls(name, run.config, terms_of(run, own), own.knowledge.vocabulary, others)

    def budgets(self) -> dict[PartyId, tuple[Standing | None, Standing | None]]:
        """What `others` have given so far of their budgets of vectors and of means."""
        counted, found = self.public.bundle.has_budget, {}
        for party, member in self.others.items():
            budgets, table = member.guards.budgets, member.knowledge.table
            means = budgets.means.standing(table) if budgets.means is not None and counted else None
            found[party] = budgets.atoms.standing(table) if budgets.atoms is not None else None, means
        return found


def terms_of(run: RunAsked, member: Member) -> PublicTerms:
    """As this client's own alignment has them."""
    return run.public_terms(member.knowledge.positions.union_size)


def load_member(run: RunAsked, number: PartyId) -> Member:
    """Client `number`. No other client's folder is read, and not the server's."""
    torch.set_num_threads(1)
    knowledge = load_knowledge(run.path, run.config, len(run.clients), int(number), run.settings.rules)
    return member_with(run, number, knowledge)


def member_with(run: RunAsked, number: PartyId, knowledge: Knowledge, records: Path | None = None) -> Member:
    """The same with what was loaded before. `records`: where the client's budgets are kept; usually with its keys, or
    else in its folder of the run."""
    settings, config = run.settings, run.config
    active = config.adversary == "active" and config.keys is not None
    keys = Path(config.keys or "")
    usual = record_folder(keys, int(number)) if active else RunFolder(run.path).client(int(number))
    folder = usual if records is None else records
    # Budgets are of all sessions, also of those that bear dropouts.
    helpers, askers = Helpers.of(len(run.clients), config.threat_model), len(run.clients) - 1
    budgets = Budgets(
        atom_budget_of(folder, knowledge.dim, knowledge.table, limit=settings.atom_budget, askers=askers),
        budget_of(folder, knowledge.dim, helpers, allow_extraction=settings.allow_extraction),
        exact_budget_of(folder, limit=settings.exact_budget, askers=askers),
    )
    credentials = load_credentials(keys, int(number)) if active else None
    return Member(knowledge, Guards(run.model, STEP_SECONDS, budgets, credentials))


def ask_in_process(
    run: RunAsked,
    questions: Sequence[NamedQuery],
    note: Callable[[str], None] = lambda line: None,
    each: Callable[[AskersView, Outcome], None] = lambda view, outcome: None,
) -> tuple[AskersView, Session]:
    """All questions in one session, whose parties are threads.

    `note` is told of dropouts, a line each, and `each` of every question as soon as something has come of it.
    """
    serving = run.serving(note)
    members = {number: load_member(run, number) for number in run.clients}
    for number, member in members.items():
        if terms_of(run, member) != serving.public:
            raise UserError(f"{RunFolder(run.path).client(int(number))}: of another alignment than the server's")
    view, rules = AskersView.of(run, members), run.settings.rules
    known = {name for member in members.values() for name in member.knowledge.vocabulary.relations}
    for name in sorted((rules.no_atoms | (rules.exact or frozenset())) - known):
        note(f"warning: no client has a relation {ascii_quoted(name)}, so a rule about it changes nothing")
    session = hold_session(
        serving,
        members,
        questions,
        STEP_SECONDS * (1 + len(questions)),
        on_outcome=lambda outcome: each(view, outcome),
    )
    return view, session
