"""`serve --questions`: the server's part of questions about a run that is complete."""

import argparse
from collections.abc import Callable
from pathlib import Path

from launch.between.questions import identities
from launch.hosts.network_questions import Questions, serve_questions
from protocols.foundation.identifiers import PartyId
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.record import accepted_roster
from secure_kg.provisioning.roster import Roster
from secure_kg.queries.retrieval.over_run import finished
from secure_kg.queries.retrieval.run_terms import shared_block
from secure_kg.runs.alignment_files import load_aligned
from secure_kg.runs.run_folder import RunFolder


def question_server(options: argparse.Namespace, roster: Roster, path: Path) -> tuple[Questions, Callable[..., int]]:
    """What is served, and what serves it. `UserError` in one line for a run that has nothing to ask."""
    if (config := _config(path)).digest() != roster.settings.digest():
        raise UserError(f"{path}: a run with other settings than those of {shown(options.federation)}")
    if options.record is not None:
        try:
            options.record.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as problem:
            raise UserError(f"--record {shown(options.record)}: cannot be made ({problem.strerror})") from None
    wait = {} if options.wait is None else {"wait": options.wait}
    serving = Questions(
        run=path,
        config=config,
        federation=roster.digest,
        identity=_newest_identities(options.federation, options.site, roster),
        report=say,
        names={int(member.number): member.name for member in roster.members},
        record=options.record,
        **wait,
    )
    return serving, serve_questions


def _config(path: Path) -> RunConfig:
    config = finished(path)
    shared_block(config)
    if load_aligned(RunFolder(path).server) is None:
        raise UserError(f"{path}: its clients' names were not aligned")
    return config


def _newest_identities(federation: Path, site: Path, roster: Roster) -> Callable[[PartyId], bytes | None]:
    """By the file as it is now, if that is a sound version; sites check for themselves."""
    known = {"roster": roster}

    def identity(party: PartyId) -> bytes | None:
        try:
            newest = accepted_roster(federation, site)
        except UserError:
            newest = known["roster"]
        if newest.digest == roster.digest:
            known["roster"] = newest
        return identities(known["roster"])(party)

    return identity
