"""Five clinics add up their monthly cases. The server learns the sum, and nothing of any one clinic.

python examples/first_secure_sum.py
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from protocols import simulate_sum
from secure_kg.report.charts import series_chart
from secure_kg.report.html import Html
from secure_kg.report.picture import Panel, picture

OUT, MONTHS = Path(__file__).resolve().parent / "out", range(1, 13)
# What each clinic counted, month by month. Nobody else may see these numbers.
CASES = {
    1: [12, 9, 11, 14, 20, 26, 31, 30, 22, 15, 10, 9],
    2: [30, 28, 27, 25, 22, 18, 15, 16, 19, 24, 28, 31],
    3: [5, 6, 5, 7, 6, 8, 7, 6, 5, 6, 7, 6],
    4: [18, 17, 16, 18, 19, 21, 20, 19, 18, 17, 18, 19],
    5: [40, 35, 33, 30, 24, 20, 18, 19, 25, 31, 37, 41],
}

# The real protocol, with all its keys and masks; every party is a thread. Clinic 3 drops out once keys are agreed on,
# before it has sent anything. The others go on, and the masks that they share with it are removed.
done = simulate_sum(CASES, dropouts=[3])
expected = np.sum([cases for clinic, cases in CASES.items() if clinic != 3], axis=0)
print("contributed:", ", ".join(f"clinic {number}" for number in done.contributors))
print("the sum:    ", done.total.round().astype(int).tolist())
print("as it is:   ", expected.tolist())
print(f"a clinic sent {done.bytes_up:,} bytes and received {done.bytes_down:,} at most")

# What the server received of each clinic: numbers modulo 2^64, each as random as the next.
received = {clinic: vector.astype(float) / 2.0**64 for clinic, vector in sorted(done.received.items())}
names = tuple(f"clinic {clinic}" for clinic in received)


def by_month(rows: Sequence[Iterable[float]]) -> Html:
    series = [(name, list(zip(MONTHS, row, strict=True))) for name, row in zip(names, rows, strict=True)]
    return series_chart(series, "month", "cases", [(month, str(month)) for month in MONTHS])


panels = [
    Panel("What clinics have: cases by month", by_month([CASES[clinic] for clinic in received]), names=names),
    Panel("What the server receives, over 2^64", by_month(list(received.values()))),
]
note = f"What it learns is the sum: {', '.join(f'{cases:.0f}' for cases in done.total)}. Clinic 3 dropped out."
print("picture:", picture("One secure sum", panels, note).save(OUT / "first_secure_sum.svg"))
