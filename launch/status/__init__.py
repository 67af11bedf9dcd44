"""A live page of one party: `StatusBoard` gathers what the party knows, `StatusServer` shows it on this machine.

Nothing is computed while nobody looks. The page tells nothing that is not in the party's own log and counters: no
triples, names, rows or keys. Everybody who may use this machine can open it, so it must stay so.
"""
