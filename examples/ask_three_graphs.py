"""A question that no single graph can answer: three clients train encoders together (FedCQA), and one of them asks.

python examples/ask_three_graphs.py [ROUNDS]
"""

import sys
from pathlib import Path

from secure_kg import simulate

OUT = Path(__file__).resolve().parent / "out"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40

# UMLS divided by relations: no two clients have a relation in common. Each draws queries from its own graph, trains an
# encoder on them, and shares rows and operators by secret sums: the server cannot read even the totals.
run = simulate("umls", clients=3, strategy="fedcqa", rounds=ROUNDS)
print(run)

# Which graph has which relation? Only their owners know; whoever runs all three may look.
QUESTION = '?x : diagnoses(?x, "disease_or_syndrome") & treats(?x, "disease_or_syndrome")'
for relation in ("diagnoses", "treats"):
    holders = [number for number in (1, 2, 3) if relation in run.client(number).graph.relations]
    print(f"{relation}: in the graph of client {holders}")

# Client 1 asks. What the question needs is looked up from all clients at once, by masked sums whose parts nobody sees;
# candidates are scored by clients and compared under encryption, and only the best positions come out.
answers = run.ask(QUESTION, client=1, top=5)
print(answers)
for line in answers.learned:
    print("-", line)
print(f"the asker sent and received {answers.bytes:,} bytes")

# With hide_query=True the others do not see what they score. It costs more.
hidden = run.ask(QUESTION, client=1, top=5, hide_query=True)
print("the same answers with the query hidden:", hidden.names == answers.names, f"({hidden.bytes:,} bytes)")
print("picture:", answers.picture().save(OUT / "ask_three_graphs.svg"))
