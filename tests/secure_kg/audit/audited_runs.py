"""Small real runs with transcripts, and transcripts changed on purpose under a chain made anew: only contents tell."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from federation_in_threads import nations, run_federation, small_config

from protocols import wire
from protocols.identifiers import NO_SESSION, PartyId, RoundId
from protocols.transport.tap import Tap
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.read import Observation, Recording, open_run
from secure_kg.federation.config import RunConfig
from secure_kg.federation.messages import Hello, Welcome
from secure_kg.federation.run_folder import RunFolder
from secure_kg.federation.summary import summarise

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


def transcript_of(run: Path) -> Path:
    (path,) = run.glob("transcript-*.bin")
    return path


def observed(run: Path) -> list[Observation]:
    return list(Recording(transcript_of(run)))


def edited(run: Path, out: Path, edit: Edit) -> Path:
    """A copy of `run` whose transcript was rewritten by somebody who can: every link fits, and no seal is left."""
    shutil.copytree(run, out)
    path = transcript_of(out)
    session = Recording(path).session
    assert session is not None
    observations = list(edit(observed(run)))
    path.unlink()
    tap = Tap(path)
    for one in observations:
        under = NO_SESSION if isinstance(one.message, Hello | Welcome) else session
        frame = wire.encode(one.message, under, RoundId(one.round))
        tap.write(one.direction, PartyId(one.peer), RoundId(one.round), one.phase, bytes(frame))
    tap.close()
    for kept in (out / "summary.json", *out.glob("clients/*/receipt-*.jsonl")):
        kept.unlink(missing_ok=True)
    return out


def replacing(choose: Callable[[Observation], bool], change: Callable[[Observation], wire.Message]) -> Edit:
    """Change the messages that `choose` picks."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield dataclasses.replace(one, message=change(one)) if choose(one) else one

    return edit


def with_fields(message: wire.Message, **changes: Any) -> wire.Message:
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    return type(message)(**{**values, **changes})


def audited(run: Path, directory: Mapping[PartyId, bytes] | None = None) -> Audit:
    opened = open_run(run)
    found = audit(opened, run / "clients", directory)
    json.dumps(found.record(), allow_nan=False)
    return found


def ids(found: Audit, *severities: str) -> set[str]:
    return {one.id for one in found.findings if not severities or one.severity in severities}
