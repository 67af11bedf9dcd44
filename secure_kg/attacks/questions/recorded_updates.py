"""Updates of clients in a recorded run: the paper's perturbation, and secret sums of the same training.

Attacker:  the server, which subtracts two uploads of a client (`secure_kg.attacks.static_perturbation`).
Has:       of the run in clear, the rows that clients have uploaded; a perturbation is added to them here, one for all
           rounds, as FedCQA's algorithm 1 says. Of the secret run, the uploads as they were recorded.
Truth:     how the uploaded rows of the run in clear have changed. Both runs train alike to the last bit, so this is
           what the clients of the secret run have done as well.
"""

from collections.abc import Mapping
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.attacks.result import AttackResult
from secure_kg.attacks.static_perturbation import Values, published_uploads, subtraction_result
from secure_kg.attacks.uploads import upload_words
from secure_kg.audit.view.read import AuditedRun, open_run
from secure_kg.foundation.errors import UserError

_ROWS: Final = "rows"
_MAY_DIFFER: Final = frozenset({"aggregation", "alignment", "transcript", "union_bound"})


def uploads_of(run: AuditedRun) -> dict[int, list[Values]]:
    """By client, one upload for each round of training, [union, width] as the server decodes it."""
    found: dict[int, dict[int, Values]] = {}
    for seen in chain.from_iterable(run.recordings):
        match seen.message:
            case ClearInput() | MaskedInput() as upload if upload.purpose == _ROWS and seen.direction == "received":
                layout, vector = upload_words(run.config, upload)
                values = layout.codec.decode(vector[: layout.real_entries]).astype(np.float64)
                found.setdefault(seen.peer, {})[int(seen.round)] = values
    return {client: [rounds[number] for number in sorted(rounds)] for client, rounds in sorted(found.items())}


def attack_recorded(plain: Path, secret: Path, seed: int = 0) -> list[tuple[AttackResult, AttackResult]]:
    """By client: the attack on the paper's perturbation, and on the secret sums."""
    in_clear, masked = open_run(plain), open_run(secret)
    _require_twins(in_clear, masked)
    truth, uploads = uploads_of(in_clear), uploads_of(masked)
    _require_alike(truth, uploads)
    return [
        (
            subtraction_result(
                published_uploads(parameters, seed + client), parameters, client, "one perturbation", "differences-one"
            ),
            subtraction_result(uploads[client], parameters, client, "secret sums", "differences-secret"),
        )
        for client, parameters in truth.items()
    ]


def _require_twins(in_clear: AuditedRun, masked: AuditedRun) -> None:
    if (in_clear.config.aggregation, masked.config.aggregation) != ("plain", "secret"):
        raise UserError("--recorded takes a run with --aggregation plain and one with --aggregation secret")
    for one in fields(in_clear.config):
        if one.name not in _MAY_DIFFER and getattr(in_clear.config, one.name) != getattr(masked.config, one.name):
            raise UserError(f"--recorded: the two runs differ in {one.name}, so that they have not trained alike")


def _require_alike(truth: Mapping[int, list[Values]], uploads: Mapping[int, list[Values]]) -> None:
    if {client: len(rounds) for client, rounds in truth.items()} != {
        client: len(rounds) for client, rounds in uploads.items()
    } or not all(len(rounds) > 1 for rounds in truth.values()):
        raise UserError("--recorded: the transcripts lack uploads of rows in two rounds by the same clients")
