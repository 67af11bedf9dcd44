"""The relation between two entities, from their rows and the rows of relations that the attacker knows.

FedR (Zhang et al. 2022), section 3.1, steps 2 to 4, and algorithm 2, lines 6 to 10: compute r' = argmax_r f(h, r, t),
then take the known relation that is most similar to it by cosine.

    TransE, TransM              r' = t - h. (TransM's weights are positive and do not move the maximum.)
    RotatE                      r' is the turn from h to t, coordinate by coordinate. A phase is compared as a point on
                                the unit circle: phases that differ by a full turn are the same.
    DistMult, ComplEx, RESCAL   f is linear in r and has no maximum. The known relation with the largest f(h, r, t) is
                                taken itself, which is step 2 over the relations that are known.

A model that is not listed is refused: its relations would be looked for where they are not, and the attack would fail
for a reason that protects nobody.

Each comes down to one matrix product of evidence [pairs, m] from the entities with keys [relations, m].
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.uploads import Places
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS, initial_range

_PAIRS_AT_A_TIME: Final = 1 << 13


def likeliest_relations(heads: Rows, tails: Rows, relations: Rows, training: TrainingConfig) -> Places:
    """heads, tails [n, entity width] and known relations [m, relation width] to the number [n] of the likeliest."""
    keys = _keys(relations, training)
    chosen = np.empty(len(heads), dtype=np.int64)
    for start in range(0, len(heads), _PAIRS_AT_A_TIME):
        part = slice(start, start + _PAIRS_AT_A_TIME)
        chosen[part] = (_evidence(heads[part], tails[part], training) @ keys.T).argmax(axis=1)
    return chosen


def unit_rows(rows: Rows) -> Rows:
    """Rows [n, width] of length one; a row of zeros stays one."""
    length = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
    return (rows / np.where(length > 0, length, 1.0)).astype(np.float32)


def nearest(rows: Rows, known: Rows) -> Places:
    """For rows [n, width] the number [n] of the most similar among known [m, width], by cosine."""
    keys, chosen = unit_rows(known), np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _PAIRS_AT_A_TIME):
        part = slice(start, start + _PAIRS_AT_A_TIME)
        chosen[part] = (rows[part] @ keys.T).argmax(axis=1)  # the length of a row does not change its nearest
    return chosen


def _evidence(heads: Rows, tails: Rows, training: TrainingConfig) -> npt.NDArray[np.float32]:
    match MODELS[training.model].relation:
        case "product":
            return heads * tails
        case "complex product":
            turn = _complex(heads) * _complex(tails).conj()  # Re(h r conj(t)) = Re(r) Re(turn) - Im(r) Im(turn)
            return np.concatenate((turn.real, -turn.imag), axis=1)
        case "matrix":
            outer: npt.NDArray[np.float32] = (heads[:, :, None] * tails[:, None, :]).reshape(len(heads), -1)
            return outer
        case "rotation":
            turn = _complex(tails) * _complex(heads).conj()
            turn /= np.maximum(np.abs(turn), np.finfo(np.float32).tiny)
            return np.concatenate((turn.real, turn.imag), axis=1)
        case "translation":
            return tails - heads
        case _:
            raise _refused(training.model)


def _keys(relations: Rows, training: TrainingConfig) -> npt.NDArray[np.float32]:
    match MODELS[training.model].relation:
        case "product" | "complex product" | "matrix":  # linear in the relation
            return relations
        case "rotation":
            phase = relations * np.float32(math.pi / initial_range(training.margin, training.dim))
            return np.concatenate((np.cos(phase), np.sin(phase)), axis=1)
        case "translation":
            return unit_rows(relations)
        case _:
            raise _refused(training.model)


def _refused(model: str) -> UserError:
    return UserError(f"{model}: no rule says how the rows of this model give a relation away")


def _complex(rows: Rows) -> npt.NDArray[np.complex64]:
    re, im = np.split(rows, 2, axis=1)
    return (re + 1j * im).astype(np.complex64)
