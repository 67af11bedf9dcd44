"""Protocols tried out in one process: every party is a thread with its own end of an in-process network.

staging.py  what both have in common: who takes part, who drops out, what the server receives
sums.py     one sum by any aggregation
unions.py   one private set union

The parties run the code that they would run as processes of their own, cryptography included. But whoever calls these
functions has all inputs in one place: they show what a protocol does and what it costs, and protect nobody.
"""
