"""Small real runs with transcripts, and transcripts changed on purpose under a chain made anew: only contents tell."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from protocols.foundation import wire
from protocols.foundation.identifiers import NO_SESSION, PartyId, RoundId
from protocols.session.conversation import Failed, LeaveOut
from protocols.transport.tap import Tap
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.view.read import Observation, Recording, open_run
from secure_kg.federation.plan.messages import Hello, Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support.federation_in_threads import nations, run_federation, small_config

Edit = Callable[[Iterable[Observation]], Iterable[Observation]]


def recorded_run(path: Path, clients: int = 4, **changes: Any) -> Path:
    """A whole federation with a transcript and a summary."""
    config = audited_config(clients, **changes)
    run = run_federation(config, nations(clients), path)
    folder = RunFolder(path)
    folder.write_summary(summarise(config, run.done(), folder))
    return path


def audited_config(clients: int, **changes: Any) -> RunConfig:
    return small_config(**{"rounds": 3, "eval_every": 3, "transcript": True, "clients": clients, **changes})


def resumed_run(path: Path, **changes: Any) -> Path:
    """Three rounds, the last of which is evaluated because it is the last, and after a checkpoint two more."""
    for rounds, resume in ((3, False), (5, True)):
        config = audited_config(4, **{"rounds": rounds, "eval_every": 2, "checkpoint_every": 2, **changes})
        run_federation(config, nations(4), path, resume=resume).done()
    return path


def transcript_of(run: Path) -> Path:
    (path,) = run.glob("transcript-*.bin")
    return path


def observed(run: Path) -> list[Observation]:
    return list(Recording(transcript_of(run)))


def edited(run: Path, out: Path, edit: Edit, session: int | None = None) -> Path:
    """A copy of `run` whose transcripts were rewritten by somebody who can: every link fits, and no seal is left.

    `session`: which of its sessions is edited, from 1; None: all.
    """
    shutil.copytree(run, out)
    for number, recording in enumerate(open_run(run).recordings, start=1):
        observations = list(recording)
        path = out / recording.path.name
        path.unlink()
        # All are written anew, in their order: an audit goes by the times of their first messages.
        _write(path, recording, edit(observations) if session in (None, number) else observations)
    for kept in (out / "summary.json", *out.glob("clients/*/receipt-*.jsonl")):
        kept.unlink(missing_ok=True)
    return out


def _write(path: Path, recording: Recording, observations: Iterable[Observation]) -> None:
    session = recording.session
    assert session is not None
    tap = Tap(path)
    for one in observations:
        greeting = isinstance(one.message, Hello | Welcome) or (
            not one.round and isinstance(one.message, LeaveOut | Failed)
        )
        under = NO_SESSION if greeting else session
        frame = wire.encode(one.message, under, RoundId(one.round))
        tap.write(one.direction, PartyId(one.peer), RoundId(one.round), one.phase, bytes(frame))
    tap.close()


def replacing(choose: Callable[[Observation], bool], change: Callable[[Observation], wire.Message]) -> Edit:
    """Change the messages that `choose` picks."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield dataclasses.replace(one, message=change(one)) if choose(one) else one

    return edit


def after(choose: Callable[[Observation], bool], more: Callable[[Observation], wire.Message]) -> Edit:
    """After each message that `choose` picks another one, to or from the same client."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield one
            if choose(one):
                yield dataclasses.replace(one, message=more(one))

    return edit


def without(choose: Callable[[Observation], bool]) -> Edit:
    return lambda observations: [one for one in observations if not choose(one)]


def with_fields(message: wire.Message, **changes: Any) -> wire.Message:
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    return type(message)(**{**values, **changes})


def audited(run: Path, directory: Mapping[PartyId, bytes] | None = None) -> Audit:
    opened = open_run(run)
    found = audit(opened, run / "clients", directory)
    json.dumps(found.record().to_json(), allow_nan=False)
    return found


NET = "not-as-programmed"
"""What an audit finds of every server that has said what its program does not say."""


def ids(found: Audit, *severities: str) -> set[str]:
    return {one.id for one in found.findings if not severities or one.severity in severities}
