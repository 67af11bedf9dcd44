"""Questions over a finished run: what its settings say, and its server. Free of torch, as the server's process is."""

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.registry import SCORES
from protocols.scores.terms import MOST_CLIENTS
from protocols.session.patience import Patience
from protocols.sums.secagg.params import ThreatModel
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.retrieval.run_terms import query_settings, score_of, shared_block
from secure_kg.queries.retrieval.serving import Serving
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.runs.alignment_files import load_aligned
from secure_kg.runs.next_step import no_run_there
from secure_kg.runs.run_folder import RunFolder, read_config
from secure_kg.runs.score_budget import USUAL_ATOMS, USUAL_EXACT
from secure_kg.runs.score_recording import require_unused

_SECONDS: Final = 60.0
"""That the server waits for an answer at most, if it has not seen yet how long answers take."""
STEP_SECONDS: Final = 10 * _SECONDS
"""That a client waits in one step: its attempts have several exchanges, in each of which the server may wait in vain.
Whoever carries the parties knows sooner of the end of the server; of one that is frozen nobody knows."""


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
    """A finished run that questions can be asked over. `UserError` for one that has nothing to ask.

    What it is made of is known to everybody: the settings of the run and those of the command. The folder of a party is
    read when the party is loaded: here that of the server, in `members` that of a client.
    """

    def __init__(self, run: Path, settings: AskSettings, config: RunConfig | None = None) -> None:
        """`config`: of a caller that knows by other records that the run has come to its end."""
        self.path, self.settings = run, settings
        self.config = finished(run) if config is None else config
        if (self.config.clients or 0) > MOST_CLIENTS:
            raise UserError(f"{run}: a run of {self.config.clients} clients; questions are for {MOST_CLIENTS} at most")
        self.clients = tuple(PartyId(number) for number in range(1, (self.config.clients or 0) + 1))
        if settings.client not in self.clients:
            raise UserError(f"--client {settings.client}: the run has clients 1 to {len(self.clients)}")
        shared_block(self.config)
        self.least = self._least()
        self.model = self._threat_model()

    @property
    def asker(self) -> PartyId:
        return PartyId(self.settings.client)

    def public_terms(self, union: int) -> PublicTerms:
        """Those of a party that knows of a union of this size."""
        config, settings = self.config, self.settings
        return PublicTerms(
            clients=self.clients,
            asker=self.asker,
            union=union,
            dim=query_settings(config).dim,
            score=score_of(config),
            clip=config.clip,
            backend=settings.scores,
            top=settings.top,
            least=self.least,
            hidden=settings.hide_query,
            exact=settings.exact,
        )

    def serving(self, note: Callable[[str], None]) -> Serving:
        """The server, from its own folder. `note` is told of dropouts, a line each."""
        settings = self.settings
        aligned = load_aligned(RunFolder(self.path).server)
        if aligned is None:
            raise UserError(f"{self.path}: its clients' names were not aligned")
        if settings.record is not None:
            require_unused(settings.record)

        def dropouts(parties: Collection[PartyId], step: str) -> None:
            for party in sorted(parties):
                note(f"client {party} dropped out ({step})")

        return Serving(
            self.public_terms(aligned.union.size),
            self.model,
            Patience(_SECONDS, self.config.grace),
            dropouts,
            settings.record,
            settings.allow_extraction,
        )

    def _least(self) -> int:
        usual, asked = SCORES[self.settings.scores].default_least, self.settings.min_holders
        least = usual if asked is None else asked
        if not 1 <= least < len(self.clients):
            others = len(self.clients) - 1
            one_or_more = f"{'is' if others == 1 else 'are'} {counted(others, 'client')}"
            raise UserError(f"--min-holders {least}: there {one_or_more} besides the asker")
        return least

    def _threat_model(self) -> ThreatModel:
        """That of the run. A backend that the server could open together with a client is for where they are apart.
        Where nothing comes of a question without all clients, no sum has to bear dropouts."""
        public = self.public_terms(1)  # whatever the union
        bundles = public.bundles
        apart = any(one.reads_all_with_a_client for one in bundles)
        model = dataclasses.replace(self.config.threat_model, server_apart=apart)
        if public.needs_all:
            model = dataclasses.replace(model, dropout=0.0)
        try:
            for bundle in bundles:
                bundle.require_standing(model)
        except ProtocolError as problem:
            raise UserError(str(problem)) from None
        return model


def finished(run: Path) -> RunConfig:
    """The settings of a run on queries that has come to its end; `UserError` for any other."""
    if not (run / "config.toml").is_file():
        raise UserError(no_run_there(run))
    config = read_config(run)
    query_settings(config)
    if RunFolder(run).summary() is None:
        raise UserError(f"{run}: the run has not come to its end; go on with --resume {run}")
    return config
