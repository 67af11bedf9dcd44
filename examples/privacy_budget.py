"""How good is a model under differential privacy? Training with noise, beside counting with noise, by budget.

python examples/privacy_budget.py [ROUNDS]
"""

import math
import sys
from pathlib import Path
from typing import Any

from secure_kg import simulate
from secure_kg.report.charts import series_chart
from secure_kg.report.picture import Panel, picture

OUT = Path(__file__).resolve().parent / "out"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 101
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)

# Every run may spend (epsilon, delta) in all: whoever sees everything that was released cannot tell well whether one
# triple was there. The smaller epsilon, the more noise. `public_evaluation` declares the held-out triples public, so
# that results on them may be told; they are no part of the promise.
common: dict[str, Any] = {"clients": 3, "delta": 1e-6, "public_evaluation": True}

# Training: one noised step of gradient descent in every round. All rows are shared, or the noise would be in vain.
training: dict[str, Any] = {"strategy": "all-rows", "dp": "sgd", "rounds": ROUNDS, "eval_every": ROUNDS}

# Counting: one noised table, how often each entity is the tail of each relation. No model, no training, one round.
# A private model that does not beat it has learned nothing that counting does not give for less.
counting: dict[str, Any] = {"strategy": "fede", "dp": "counts"}

curves = []
for name, settings in (("training with noise", training), ("counting with noise", counting)):
    points = []
    for epsilon in EPSILONS:
        run = simulate("kinships", epsilon=epsilon, **common, **settings)
        points.append((math.log2(epsilon), run.metrics["mrr"]))
        print(f"{name}, epsilon {epsilon:g}: test MRR {run.metrics['mrr']:.3f}")
    curves.append((name, points))

ticks = [(math.log2(epsilon), f"{epsilon:g}") for epsilon in EPSILONS]
chart = series_chart(curves, "epsilon", "test MRR", ticks)
note = f"One run for each point, delta 1e-6, 3 clients, {ROUNDS - 1} steps. Epsilon 8 and more promise little by proof."
panel = Panel("Test MRR on Kinships by privacy budget", chart, names=tuple(name for name, _ in curves))
print("picture:", picture("What privacy costs", [panel], note).save(OUT / "privacy_budget.svg"))
