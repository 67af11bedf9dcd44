"""The same training twice, in clear and under masks, and what the server gets to see of one client's rows.

python examples/what_the_server_sees.py [ROUNDS]
"""

import sys
from pathlib import Path
from typing import Any

from secure_kg import simulate

OUT = Path(__file__).resolve().parent / "out"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 10

# FedR on UMLS: three clients share the rows of their relations. `transcript` records every message at the server's end.
# UMLS has 46 relations. With as many numbers in a row, each line of the picture is the row of one relation.
common: dict[str, Any] = {"clients": 3, "strategy": "fedr", "rounds": ROUNDS, "dim": 46, "transcript": True}
secure = simulate("umls", aggregation="secagg", alignment="psu", **common)
plain = simulate("umls", aggregation="plain", alignment="plain", **common)

# The result is the same to the last bit: masks cancel in the sum.
print("test MRR:", secure.metrics["mrr"], "under masks,", plain.metrics["mrr"], "in clear")
print("bytes from clients:", f"{secure.bytes.up:,}", "under masks,", f"{plain.bytes.up:,}", "in clear")

# What the server learns, by declaration.
for run in (plain, secure):
    row = run.disclosures[0]
    print(f"{run.summary.settings.aggregation}: of {row.heading} the server learns {row.server}")

# An audit reads what the server really saw, message by message, and attacks it with the help of one client.
for run, name in ((plain, "plain"), (secure, "secure")):
    found = run.audit()
    won = sum(bool(attack.succeeded) for attack in found.attacks)
    print(f"{name}: {found.verdict} ({found.high} high findings, {won} of {len(found.attacks)} attacks succeeded)")
    print("   the whole report:", found.save(OUT / f"audit-{name}"))

# `found` is now the audit of the secure run: one client's rows before masks, and as the server received them.
print("picture:", found.picture().save(OUT / "what_the_server_sees.svg"))
