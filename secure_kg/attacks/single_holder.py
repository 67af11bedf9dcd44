"""A sum with one contributor is that contribution.

Attacker: the server, which reads sums of rows and how many clients contributed to each row; or the server and a client
          that colludes, which takes its own contribution out of the sums first.
Has:      the sums and counts of one round or more, and who took part in each.
Gains:    every row with a count of one, to the last bit, and, where clients come and go, whose it is: whoever took part
          in a round in which nobody contributed to the row does not hold it.
Guards:   `--min-holders 2` against the server alone; a client on its side lowers the bound by one (SECURITY.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.result import AttackResult, Rate
from secure_kg.attacks.uploads import Places, RowUpload

NOBODY = 0
"""For a row whose owner cannot be told; clients are numbered from 1."""


@dataclass(frozen=True, slots=True)
class OpenedRows:
    """One sum of rows as the server reads it."""

    contributors: frozenset[int]
    sums: npt.NDArray[np.float64] = field(repr=False)
    """[union, width]."""
    counts: npt.NDArray[np.int64] = field(repr=False)
    """[union]: how many clients contributed to each row."""

    @classmethod
    def of_uploads(cls, uploads: Iterable[RowUpload]) -> "OpenedRows":
        """The sum that a server makes of uploads in clear."""
        parts = list(uploads)
        sums = np.sum([part.rows.astype(np.float64) for part in parts], axis=0)
        counts = np.sum([part.counts for part in parts], axis=0)
        return cls(frozenset(part.client for part in parts), sums, counts)

    def without(self, known: Iterable[RowUpload]) -> "OpenedRows":
        """The same sum less what clients on the server's side have contributed."""
        opened = self
        for part in known:
            if part.client in opened.contributors:
                opened = replace(
                    opened,
                    contributors=opened.contributors - {part.client},
                    sums=opened.sums - part.rows,
                    counts=opened.counts - part.counts,
                )
        return opened


@dataclass(frozen=True, slots=True)
class LoneRows:
    """Rows that one client alone has contributed."""

    positions: Places = field(repr=False)
    """[n]."""
    rows: npt.NDArray[np.float64] = field(repr=False)
    """[n, width]."""
    owners: Places = field(repr=False)
    """[n]: the client, or `NOBODY` if more than one comes into question."""


def lone_rows(rounds: Sequence[OpenedRows]) -> LoneRows:
    """Rows with a count of one in the last of `rounds`; the others serve to tell whose they are."""
    last = rounds[-1]
    positions = np.flatnonzero(last.counts == 1).astype(np.int64)
    clients = sorted(last.contributors)
    possible = np.ones((len(clients), len(positions)), dtype=np.bool_)
    for one in rounds:
        took_part = np.array([client in one.contributors for client in clients], dtype=np.bool_)
        nobody = one.counts[positions] == 0
        possible &= ~(took_part[:, None] & nobody[None, :])
    certain = possible.sum(axis=0) == 1
    numbers = np.array([*clients, NOBODY], dtype=np.int64)
    owners = np.where(certain, numbers[possible.argmax(axis=0)] if len(clients) else NOBODY, NOBODY)
    return LoneRows(positions, last.sums[positions], owners.astype(np.int64))


def score_lone_rows(guess: LoneRows, truth: Mapping[int, RowUpload], *, tolerance: float = 1e-6) -> AttackResult:
    """`truth`: what each client really contributed in the last round, as its own process knows it.

    `rows`: of all contributed rows of these clients, the share that stands open. `owners`: of the open rows, the share
    whose owner was told rightly; chance: one of the contributors, drawn.
    """
    contributed = sum(len(upload.positions) for upload in truth.values())
    opened, owned = 0, 0
    for client, upload in truth.items():
        same = np.abs(upload.rows[guess.positions] - guess.rows).max(axis=1, initial=0.0) <= tolerance
        mine = same & (upload.counts[guess.positions] == 1)
        opened += int(mine.sum())
        owned += int((mine & (guess.owners == client)).sum())
    rows, owners = Rate(opened, contributed, 0.0), Rate(owned, opened, 1 / max(len(truth), 1))
    return AttackResult(
        "single-holder",
        "Rows that one client alone contributed",
        "aggregate",
        "sums of rows, the number of contributors to each, and who took part",
        {"rows": rows.value, "owners": owners.value},
        {"rows": rows.chance, "owners": owners.chance},
        opened > 0,  # a row that equals its sum is no matter of luck
        f"{opened} of {contributed} contributed rows stand open in a sum of their own, and for {owned} of them the "
        "server can tell whose they are.",
        {"rows": contributed, "open": opened},
    )


def score_lone_holders(guess: LoneRows, held: Mapping[int, Places]) -> AttackResult:
    """As `score_lone_rows`, where nobody kept what clients contributed: by which positions [n] each really holds.

    A row with one contributor is that contributor's, so it stands open whatever its values are.
    """
    holders = {client: np.isin(guess.positions, positions) for client, positions in held.items()}
    opened = int(np.any(list(holders.values()), axis=0).sum()) if len(guess.positions) else 0
    owned = sum(int((mine & (guess.owners == client)).sum()) for client, mine in holders.items())
    contributed = sum(len(positions) for positions in held.values())
    rows, owners = Rate(opened, contributed, 0.0), Rate(owned, opened, 1 / max(len(held), 1))
    return AttackResult(
        "single-holder",
        "Rows that one client alone contributed",
        "aggregate",
        "sums of rows, the number of contributors to each, and who took part",
        {"rows": rows.value, "owners": owners.value},
        {"rows": rows.chance, "owners": owners.chance},
        opened > 0,
        f"{opened} of {contributed} rows that clients hold stand open in a sum of their own, and for {owned} of them "
        "the server can tell whose they are.",
        {"rows": contributed, "open": opened},
    )
