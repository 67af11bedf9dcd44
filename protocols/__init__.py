"""Cryptographic protocols between one server and its clients.

This package knows bytes, numpy arrays and parties; it knows nothing of graphs or models.
Every protocol assumes a semi-honest server unless its own docstring says otherwise; each states its parties,
adversary, what it reveals, what it assumes and what it does not cover. `protocols/README.md` lists the modules
in dependency order.
"""
