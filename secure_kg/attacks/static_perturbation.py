"""FedCQA's secret aggregation as published, and how the server reads it.

In algorithm 1 of the paper each client draws one perturbation, tells it to all other clients, and adds it to what it
uploads: in every round the same one (section 4.1.2 draws it at initialisation). Two things follow.

Attacker, alone:          the server. The difference of two uploads of a client is exactly what the client's parameters
                          changed by between the two rounds: its update, from which training data can be inferred.
Attacker, with a client:  the server and any one client, who knows all perturbations. Every single upload is open, of
                          every client and every round.

This variant exists here only, to be attacked; `protocols.sums.secret.aggregation` is the one to use. There a mask is
used once, so differences are noise, and a client's group key opens the sum but no upload.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId
from protocols.sums.interface import Contribution, SumLayout
from secure_kg.attacks.result import AttackResult, explains_more
from secure_kg.attacks.secret_uploads import secret_uploads
from secure_kg.foundation.seeds import generator

_NO_COUNTS: Final = np.zeros(0, dtype=np.int64)

Values = npt.NDArray[np.float64]
"""The parameters of one client, any shape."""


def published_upload(parameters: Values, perturbation: Values) -> Values:
    """What a client sends to the server in any round: FedCQA, algorithm 1, line 3."""
    return parameters + perturbation


def update_between(earlier_upload: Values, later_upload: Values) -> Values:
    """What the server computes from two uploads of one client: how its parameters have changed."""
    return later_upload - earlier_upload


def opened_by_colluder(upload: Values, perturbation: Values) -> Values:
    """What the server computes with the help of one client, who was told the uploader's perturbation."""
    return upload - perturbation


def explained(truth: Values, guess: Values) -> float:
    """How well a guess matches the truth: the squared correlation, 1 for an exact copy and about 0 for noise."""
    if truth.std() == 0 or guess.std() == 0:
        return 0.0
    return float(np.corrcoef(truth.reshape(-1), guess.reshape(-1))[0, 1] ** 2)


def published_uploads(parameters: Sequence[Values], seed: int, scale: float = 1000.0) -> list[Values]:
    """A simulated client of the published algorithm: its parameters of some rounds under its one perturbation."""
    perturbation = generator(seed, "perturbation").normal(scale=scale, size=parameters[0].shape)
    return [published_upload(values, perturbation) for values in parameters]


def simulated_training(rounds: int, shape: tuple[int, ...], seed: int) -> list[Values]:
    """Parameters of a client that move a little from round to round."""
    draw = generator(seed, "simulated training")
    steps = [draw.normal(size=shape), *(draw.normal(scale=0.1, size=shape) for _ in range(rounds - 1))]
    return list(np.cumsum(steps, axis=0))


def subtraction_result(
    uploads: Sequence[Values], parameters: Sequence[Values], client: int, protocol: str, id: str
) -> AttackResult:
    """What the differences of a client's consecutive uploads tell of its updates, over all rounds.

    `uploads` and `parameters` [rounds], of the same shape. Under ring masks an upload is read as signed numbers. Score
    `explained`: the squared correlation of differences and updates, 1 for an exact copy; chance: that of noise.
    """
    guess = np.concatenate([update_between(*two).reshape(-1) for two in pairwise(uploads)])
    truth = np.concatenate([(later - earlier).reshape(-1) for earlier, later in pairwise(parameters)])
    score, chance = explained(truth, guess), 1.0 / max(len(truth), 1)
    opened = explains_more(score, len(truth), chance)
    return AttackResult(
        id,
        f"Updates from differences of uploads, {protocol}",
        f"client {client}",
        "a client's uploads of different rounds",
        {"explained": score},
        {"explained": chance},
        opened,
        f"Subtracting uploads of client {client} shows how its model changed: {score:.2%} of the variance is explained."
        if opened
        else f"Differences of the uploads of client {client} are noise.",
        {"values": len(truth)},
    )


def attack_published(seed: int = 0, rounds: int = 3, shape: tuple[int, int] = (40, 16)) -> AttackResult:
    """FedCQA's algorithm 1 as published, simulated: falls."""
    parameters = simulated_training(rounds, shape, seed)
    return subtraction_result(
        published_uploads(parameters, seed), parameters, 1, "FedCQA as published", "differences-published"
    )


def attack_secret_aggregation(seed: int = 0, rounds: int = 3, shape: tuple[int, int] = (40, 16)) -> AttackResult:
    """The same client under `protocols.sums.secret.aggregation`, with the masks of a real session: stands."""
    parameters = simulated_training(rounds, shape, seed)
    layout = SumLayout(parameters[0].size, 0, bound=16.0, max_count=1, parties=2, ring_bits=32)
    vectors = [layout.encode(Contribution(values.reshape(-1), _NO_COUNTS)).vector for values in parameters]
    uploads = [
        layout.codec.decode(vector).reshape(shape) for vector in secret_uploads(vectors, layout, client=PartyId(1))
    ]
    return subtraction_result(uploads, parameters, 1, "secret aggregation of this toolkit", "differences-secret")
