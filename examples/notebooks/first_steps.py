# %% [markdown]
# # First steps
# A secure sum, a private set union and a whole federated training, in one process. The parties run the code that they
# would run on machines of their own; here all of them are threads, so nothing is protected, and all can be looked at.

# %% [markdown]
# ## A sum that nobody can take apart
# Four clients, of whom the third drops out on the way. The server learns the sum over the others.

# %%
from protocols import simulate_sum

rows = {1: [0.5, 1.0], 2: [0.25, 2.0], 3: [4.0, 4.0], 4: [0.25, 3.0]}
done = simulate_sum(rows, dropouts=[3])
done.total, done.contributors, done.read_by

# %% [markdown]
# What the server received of client 1 is a masked vector. It is another one every time.

# %% varies
done.received[1]

# %% [markdown]
# ## Names that stay at home
# Clients find out where their names stand in the union, and the server learns how many there are.

# %%
from protocols import simulate_union

union = simulate_union([["treats", "causes"], ["causes", "part of"], ["treats"]])
same = union.positions[1]["treats"] == union.positions[3]["treats"]
union.size, same, union.server_learns

# %% [markdown]
# ## A federated training
# Three clients on the small graph Nations. Keyword arguments are the options of the commands.

# %%
import secure_kg

result = secure_kg.simulate("nations", clients=3, strategy="fede", rounds=20, dim=32, lr=0.01)
[(number, round(mrr, 3)) for number, mrr in result.curve]

# %% varies
result

# %% varies
result.plot()

# %% [markdown]
# Who learns what, in the words of the protocols that this run used:

# %%
result.disclosures

# %% [markdown]
# Every client has its own model, which answers by name:

# %%
result.client(1).predict_tails("china", "militaryalliance", top=3)

# %% [markdown]
# A misspelt setting is one clear error:

# %%
try:
    secure_kg.simulate("nations", round=20)
except secure_kg.UserError as problem:
    print(problem)
