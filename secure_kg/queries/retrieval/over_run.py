"""Questions over a finished run, with all its parties in one process: each is loaded from its own files."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import torch

from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.scores.budget import Helpers, Standing
from protocols.session.patience import Patience
from protocols.sums.secagg.params import ThreatModel
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.retrieval.files import load_knowledge
from secure_kg.queries.retrieval.in_process import Member, Session, hold_session
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.retrieval.run_terms import query_settings, score_of, shared_block
from secure_kg.queries.retrieval.serving import Serving
from secure_kg.queries.retrieval.session import Budgets, Guards
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.runs.alignment_files import load_aligned
from secure_kg.runs.key_files import load_credentials, record_folder
from secure_kg.runs.run_folder import RunFolder, read_config
from secure_kg.runs.score_budget import USUAL_ATOMS, USUAL_EXACT, atom_budget_of, budget_of, exact_budget_of
from secure_kg.runs.score_recording import require_unused

_SECONDS: Final = 60.0
"""That the server waits for an answer at most, if it has not seen yet how long answers take."""
_STEP_SECONDS: Final = 600.0
"""That a client waits: in this process the end of the server is known at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings:
    """How questions are asked."""

    client: int = 1
    scores: str = "topk"
    top: int = 10
    hide_query: bool = False
    exact: Exact = Exact.NO
    min_holders: int | None = None
    """None: what the backend usually has."""
    rules: Rules = field(default_factory=Rules)
    """Of every client that answers."""
    atom_budget: int = USUAL_ATOMS
    exact_budget: int = USUAL_EXACT
    allow_extraction: bool = False
    record: Path | None = None


class RunAsked:
    """A finished run that questions can be asked over. `UserError` for one that has nothing to ask."""

    def __init__(self, run: Path, settings: AskSettings, note: Callable[[str], None] = lambda line: None) -> None:
        """`note` is told of dropouts, a line each."""
        self._run, self._settings, self._note = run, settings, note
        self.config = _finished(run)
        self._clients = tuple(PartyId(number) for number in range(1, (self.config.clients or 0) + 1))
        if settings.client not in self._clients:
            raise UserError(f"--client {settings.client}: the run has clients 1 to {len(self._clients)}")
        self.public = self._public_terms()
        self._model = self._threat_model()
        torch.set_num_threads(1)
        self._members = {number: self._member(number) for number in self._clients}
        self.own = self._members[self.public.asker].knowledge.vocabulary

    def ask(self, questions: Sequence[NamedQuery]) -> Session:
        """All questions in one session."""
        settings, config = self._settings, self.config
        if settings.record is not None:
            require_unused(settings.record)
        serving = Serving(
            self.public,
            self._model,
            Patience(_SECONDS, config.grace),
            self._dropouts,
            settings.record,
            settings.allow_extraction,
        )
        return hold_session(serving, self._members, questions, _STEP_SECONDS * (1 + len(questions)))

    @property
    def name(self) -> str:
        """Of the run's folder."""
        return self._run.resolve().name

    def budgets(self) -> dict[PartyId, tuple[Standing | None, Standing | None]]:
        """What the clients that answer have given so far of their budgets of vectors and of means."""
        counted, found = self.public.bundle.has_budget, {}
        for party, member in self._members.items():
            budgets, table = member.guards.budgets, member.knowledge.table
            means = budgets.means.standing(table) if budgets.means is not None and counted else None
            if party != self.public.asker:
                found[party] = budgets.atoms.standing(table) if budgets.atoms is not None else None, means
        return found

    def _dropouts(self, parties: Collection[PartyId], step: str) -> None:
        for party in sorted(parties):
            self._note(f"client {party} dropped out ({step})")

    def _public_terms(self) -> PublicTerms:
        config, settings = self.config, self._settings
        shared_block(config)
        aligned = load_aligned(RunFolder(self._run).server)
        if aligned is None:
            raise UserError(f"{self._run}: its clients' names were not aligned")
        public = PublicTerms(
            clients=self._clients,
            asker=PartyId(settings.client),
            union=aligned.union.size,
            dim=query_settings(config).dim,
            score=score_of(config),
            clip=config.clip,
            backend=settings.scores,
            top=settings.top,
            least=1,
            hidden=settings.hide_query,
            exact=settings.exact,
        )
        least = public.bundle.default_least if settings.min_holders is None else settings.min_holders
        if not 1 <= least < len(self._clients):
            raise UserError(f"--min-holders {least}: there are {len(self._clients) - 1} clients besides the asker")
        return dataclasses.replace(public, least=least)

    def _threat_model(self) -> ThreatModel:
        """That of the run. A backend that the server could open together with a client is for where they are apart."""
        apart = any(one.reads_all_with_a_client for one in self.public.bundles)
        model = dataclasses.replace(self.config.threat_model, server_apart=apart)
        try:
            for bundle in self.public.bundles:
                bundle.require_standing(model)
        except ProtocolError as problem:
            raise UserError(str(problem)) from None
        return model

    def _member(self, number: PartyId) -> Member:
        settings, config = self._settings, self.config
        knowledge = load_knowledge(self._run, config, len(self._clients), int(number), settings.rules)
        if knowledge.positions.union_size != self.public.union:
            raise UserError(f"{RunFolder(self._run).client(int(number))}: of another alignment than the server's")
        active = config.adversary == "active" and config.keys is not None
        keys = Path(config.keys or "")
        folder = record_folder(keys, int(number)) if active else RunFolder(self._run).client(int(number))
        helpers, askers = Helpers.of(len(self._clients), self._model), len(self._clients) - 1
        budgets = Budgets(
            atom_budget_of(folder, self.public.dim, knowledge.table, limit=settings.atom_budget, askers=askers),
            budget_of(folder, self.public.dim, helpers, allow_extraction=settings.allow_extraction),
            exact_budget_of(folder, limit=settings.exact_budget, askers=askers),
        )
        credentials = load_credentials(keys, int(number)) if active else None
        return Member(knowledge, Guards(self._model, _STEP_SECONDS, budgets, credentials))


def _finished(run: Path) -> RunConfig:
    if not (run / "config.toml").is_file():
        raise UserError(f"{run}: no run folder (it has no config.toml)")
    config = read_config(run)
    query_settings(config)
    if RunFolder(run).summary() is None:
        raise UserError(f"{run}: the run has not come to its end; go on with --resume {run}")
    return config
