"""Encoders of logical queries: a query becomes points, and entities near them are its answers.

shapes.py     kinds of encoders by name and the shapes of their operators; free of torch
encoder.py    what an encoder is, and how it walks down any query
gqe.py, q2p.py, tree_lstm.py   one encoder each
scoring.py    points against entities
registry.py   encoders by name, with their operators
model.py      rows of entities and relations, and operators, as parameters
"""
