"""Knowledge-graph embedding models: one file per model over pure score functions.

`shapes` knows names and row widths without torch, so that a server can size its tables.
`registry` builds a model by name.
"""
