"""A client's commitments to what its inputs depend on, by kind of sum (`protocols.sums.secagg.openings`).

Rows depend on the parameters from which a round is trained (and on the round, whose draws are public). Validation
results depend on the parameters as the client has last trained them: what the server has sent since moves them by as
little as it likes, and makes no other secret of them. Test results depend on the parameters that are ranked. Tables of
the union depend on the names. An input that is nothing but zeros is a secret of nobody: its commitment changes with
every round, so that it binds nobody, and repeats with it.
"""

from collections.abc import Collection
from typing import Final

from protocols.foundation.digests import digest
from protocols.sums.secagg.openings import commit
from secure_kg.data.graph import Part
from secure_kg.learning.learner import Learner

_NOTHING: Final = b"nothing in round "


class States:
    """`key`: this client's own, for as long as its record of openings (`client_folder.state_key`)."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "States()"

    def of_rows(self, learner: Learner, purpose: str) -> bytes:
        """Of a block's rows before a round is trained; `purpose`: of the block's sums."""
        return commit(self._key, purpose, learner.digest())

    def of_results(self, parameters: bytes, part: Part) -> bytes:
        """`parameters`: digest of those that the results depend on."""
        return commit(self._key, f"results/{part}", parameters)

    def of_nothing(self, kind: str, round_id: int) -> bytes:
        """Of an input of zeros."""
        return commit(self._key, kind, _NOTHING + b"%d" % round_id)

    def of_names(self, names: Collection[str], run: str) -> bytes:
        """Of one run: another one may be held by other clients, with other names."""
        return commit(self._key, "names", digest(run.encode(), *(_encoded(name) for name in sorted(set(names)))))


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
