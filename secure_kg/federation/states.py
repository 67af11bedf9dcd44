"""A client's commitments to what its inputs depend on, by kind of sum (`protocols.secagg.openings`).

Rows depend on the parameters from which a round is trained (and on the round, whose draws are public); results on the
parameters that are ranked and on the part; tables of the union on the names. An input that is nothing but zeros is a
secret of nobody: its commitment changes with every round, so that it binds nobody, and repeats with it.
"""

from collections.abc import Collection
from typing import Final

from protocols.secagg.openings import commit
from protocols.secagg.terms import digest
from secure_kg.data.graph import Part
from secure_kg.training.trainer import LocalTrainer

_NOTHING: Final = b"nothing in round "


class States:
    """`key`: this client's own, for as long as the run (`client_folder.state_key`)."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "States()"

    def of_rows(self, trainer: LocalTrainer, round_id: int, *, empty: bool) -> bytes:
        """`empty`: this client holds no shared row."""
        return commit(self._key, "rows", _NOTHING + b"%d" % round_id if empty else trainer.digest())

    def of_results(self, trainer: LocalTrainer, part: Part, round_id: int, *, empty: bool) -> bytes:
        """`empty`: it has nothing to rank and no loss to tell."""
        return commit(self._key, f"results/{part}", _NOTHING + b"%d" % round_id if empty else trainer.digest())

    def of_names(self, names: Collection[str]) -> bytes:
        encoded = (name.encode("utf-8", "surrogatepass") for name in sorted(set(names)))
        return commit(self._key, "names", digest(*encoded))
