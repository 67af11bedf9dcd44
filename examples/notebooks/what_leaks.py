# %% [markdown]
# # What leaks
# The same training in clear and under masks, and what an audit of the server's messages finds in each.

# %%
from typing import Any

from secure_kg import simulate

common: dict[str, Any] = {"clients": 3, "strategy": "fedr", "rounds": 4, "dim": 55, "transcript": True}
plain = simulate("nations", aggregation="plain", alignment="plain", **common)
secure = simulate("nations", aggregation="secagg", alignment="psu", **common)
plain.metrics["mrr"] == secure.metrics["mrr"]

# %% [markdown]
# Masks change nothing in the result. In clear, the server read everything:

# %%
seen = plain.audit()
print(seen.high, "findings of severity high")
[finding.title for finding in seen.findings if finding.severity == "high"]

# %% varies
seen

# %% [markdown]
# Under masks it read nothing beyond what the protocols declare:

# %%
found = secure.audit()
print(found.verdict)
found.high, sum(bool(attack.succeeded) for attack in found.attacks)

# %% [markdown]
# The same rows of one client, before masks and as the server received them. Nations has 55 relations, and rows have 55
# numbers here: each line of the picture is the row of one relation. Masks are fresh in every run.

# %% varies
found.picture()

# %% [markdown]
# What is declared remains: sums, how many hold a row, who took part. `disclosures` has all of it.

# %%
[(row.heading, row.server) for row in secure.disclosures]
