"""The shared rows computed again from the sums of a run, and what is wrong with a table that is another one."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.sums.interface import Total
from secure_kg.federation.plan.messages import AnyRows
from secure_kg.federation.plan.row_sum import Rows, mean_rows


@dataclass(frozen=True, slots=True)
class TableAgain:
    """`rows` [union, width], and in which round each was last averaged [union], 0: never. None: no sum so far."""

    rows: Rows | None = None
    averaged: npt.NDArray[np.uint32] | None = None

    def after(self, number: int, total: Total) -> "TableAgain":
        """With the sum of round `number`: the mean of every row to which anybody contributed.

        A sum over another union, which no honest server has in the middle of a run, begins a new table.
        """
        means, some = mean_rows(total), total.counts > 0
        rows, averaged = self.rows, self.averaged
        if rows is None or averaged is None or rows.shape != means.shape:
            rows, averaged = np.zeros_like(means), np.zeros(len(some), dtype=np.uint32)
        return TableAgain(np.where(some[:, None], means, rows), np.where(some, np.uint32(number), averaged))

    def fault(self, sent: AnyRows, number: int, clip: float) -> str:
        """What is wrong with a table that was sent in round `number`; empty if nothing is."""
        rows, averaged = self.rows, self.averaged
        if rows is None or averaged is None:
            return "a table, though no sum has given any rows"
        given = sent.rows
        if given.shape != rows.shape:
            return f"a table of shape {given.shape}, where the sums give {rows.shape}"
        other = (_bits(given) != _bits(rows)).any(axis=1) | (sent.averaged != averaged)
        if not other.any():
            return ""
        faults = [f"{np.count_nonzero(other)} of {len(rows)} rows are not what the sums give"]
        if (newest := int(sent.averaged.max())) > number:
            faults.append(f"averaged in round {newest}, which is to come")
        if (lost := int(np.count_nonzero(sent.averaged < averaged))) > 0:
            faults.append(f"{lost} averaged less recently than they were")
        if (largest := float(np.abs(given).max())) > clip:
            faults.append(f"values up to {largest:g}, beyond the clip of {clip:g}")
        return ", ".join(faults)


def _bits(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(rows, dtype="<f4").view("<u4")
