"""Two hospitals train one model without showing each other their triples. It takes a third party: see below.

python examples/two_hospitals.py [ROUNDS]
"""

import sys
from pathlib import Path

from protocols import simulate_sum
from secure_kg import simulate

OUT = Path(__file__).resolve().parent / "out"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60

# Each line: a drug, and what this house has treated with it. In earnest every client has a folder of its own.
NORTH = """aspirin fever headache stroke angina; ibuprofen fever headache arthritis gout; paracetamol fever headache
arthritis; metformin diabetes obesity; insulin diabetes; heparin stroke angina embolism; warfarin stroke embolism"""
SOUTH = """aspirin fever headache angina embolism; ibuprofen fever arthritis gout headache; colchicine gout arthritis;
metformin diabetes obesity; warfarin stroke embolism angina; statin angina stroke; insulin diabetes"""
CLINIC = """paracetamol fever headache arthritis gout; aspirin fever stroke angina; heparin embolism stroke angina;
metformin diabetes obesity; ibuprofen arthritis gout fever; statin angina stroke embolism; insulin diabetes"""


def triples(text: str) -> list[tuple[str, str, str]]:
    """Every fact in both directions, so that drugs and diseases can both be asked for."""
    lines = [line.split() for line in text.split(";")]
    facts = [(drug, disease) for drug, *diseases in lines for disease in diseases]
    return [(drug, "treats", disease) for drug, disease in facts] + [(one, "treated_by", two) for two, one in facts]


# Why not two? A sum of two hides nothing from the two: each subtracts its own part and has the other's. No masks help
# against that, and the protocol cannot refuse it, since the server still learns no more than the sum.
north, south = [3.0, 5.0], [4.0, 1.0]
print("two alone: north subtracts its own and reads", (simulate_sum([north, south]).total - north).round(9).tolist())

# So a third party joins: here a clinic. A row is averaged only if min_holders clients have it; the default is two more
# than clients are declared corrupt (max_corrupt: a quarter, of three none). With 3 it takes all of them, and each
# learns no more than the sum of the other two. Rows that fewer hold stay with them. All three must then be there in
# every sum: max_dropout=0 says so, and sets the threshold of the shares accordingly.
houses = [triples(text) for text in (NORTH, SOUTH, CLINIC)]
together = simulate(houses, strategy="fede", rounds=ROUNDS, dim=16, lr=0.01, min_holders=3, max_dropout=0.0)
print(together)
print("rows kept local:", together.summary.rows_kept_local, "of", together.summary.shared_rows)

# The model of the northern hospital answers by name, from its own folder. That aspirin is given against embolism is a
# fact of the south alone. (Twelve test triples make no good measure: this shows the way, and not how good models are.)
print(together.client(1).predict_tails("aspirin", "treats", top=3))
print("picture:", together.plot().save(OUT / "two_hospitals.svg"))
