"""FedCQA's secret aggregation as published, and how the server reads it.

In algorithm 1 of the paper each client draws one perturbation, tells it to all other clients, and adds it to what it
uploads: in every round the same one (section 4.1.2 draws it at initialisation). Two things follow.

Attacker, alone:          the server. The difference of two uploads of a client is exactly what the client's parameters
                          changed by between the two rounds: its update, from which training data can be inferred.
Attacker, with a client:  the server and any one client, who knows all perturbations. Every single upload is open, of
                          every client and every round.

This variant exists here only, to be attacked; `protocols.secret_aggregation` is the one to use. There a mask is used
once, so differences are noise, and a client's group key opens the sum but no upload.
"""

import numpy as np
import numpy.typing as npt

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
