"""Declarations of a threat model, small enough to try all of their cases."""

import math
from fractions import Fraction

from protocols.sums.secagg.params import (
    ParametersRefused,
    Server,
    SumParameters,
    ThreatModel,
    complete_parameters,
)

SMALL = range(2, 9)


def declared(
    n: int, corrupt: int, silent: int, server: Server = "semi-honest", security: int = 40, correctness: int = 30
) -> ThreatModel:
    return ThreatModel(corrupt / n, silent / n, server, security, correctness)


def accepted(n: int, model: ThreatModel, min_survivors: int = 2) -> SumParameters | None:
    try:
        return complete_parameters(n, model, min_survivors)
    except ParametersRefused:
        return None


def tail(total: int, marked: int, drawn: int, least: int) -> Fraction:
    """P[at least `least` marked among `drawn` of `total`], term by term."""
    ways = sum(
        math.comb(marked, j) * math.comb(total - marked, drawn - j) for j in range(max(0, least), drawn + 1)
    )  # comb is 0 where there is no way
    return Fraction(ways, math.comb(total, drawn))
