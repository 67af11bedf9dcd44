"""Raw building blocks. Each is safe only under the conditions its docstring states.

Import a protocol instead; only modules under `protocols/` may import from here.
"""
