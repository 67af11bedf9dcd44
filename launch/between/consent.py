"""Consent of a site: what a run is about to disclose, shown before anything leaves, and noted by digest."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from launch.between.comparing import asked, is_terminal
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import json_of
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.private_files import read_private, write_private

_FILE: Final = "consent.json"
_MOST: Final = 100
"""Digests that are kept, the newest ones."""


def show_disclosures(config: RunConfig) -> None:
    """What parties learn in a run of these settings, subject by subject."""
    disclosed = Disclosed.of(config)
    rows = [[one.heading, one.server, one.client] for one in disclosed.statements()]
    table("what this run discloses", ("", "the server learns", "another client learns"), rows)
    say(f"Against {disclosed.sums.disclosure.against}. If a client is on the server's side, it opens to it:")
    for line in disclosed.with_a_client():
        say(f"- {line}")


def require_consent(config: RunConfig, site: Path, name: str) -> None:
    """Ask at the terminal unless this site has agreed to these settings before. `UserError` if it does not agree."""
    digest, given = config.digest().hex(), _read(site)
    if digest in given:
        say(f"consent to these settings was given at {given[digest]}")
        return
    if not is_terminal():
        raise UserError(f"--consent: nobody can be asked here; run {command('launch.join')} with --consent once at a "
                        "terminal, which notes the answer")  # fmt: skip
    if not asked(f"May {name} take part in a run with these disclosures?"):
        raise UserError("--consent: not given, and nothing has left this site")
    note_consent(config, site)


def note_consent(config: RunConfig, site: Path) -> None:
    """Note that this site takes part under these settings."""
    given = _read(site)
    given.setdefault(config.digest().hex(), f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    kept = dict(list(given.items())[-_MOST:])
    write_private(site / _FILE, (json.dumps(kept, indent=2) + "\n").encode())


def _read(site: Path) -> dict[str, str]:
    path = site / _FILE
    if not path.is_symlink() and not path.exists():
        return {}
    try:
        values: Any = json_of(read_private(path))
    except ValueError:
        values = None
    if not isinstance(values, dict) or not all(isinstance(one, str) for one in values.values()):
        raise UserError(f"{shown(path)}: not a record of consent; remove it, and it is asked again")
    return values
