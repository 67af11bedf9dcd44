"""Hosts: what carries the parties of a job. `interface` says what a host does, `registry` lists the hosts by name.

The roles (`secure_kg.federation.server.serve`, `secure_kg.federation.client.take_part`) know nothing of a host. A host
is one module with an object `HOST`, and one line in the registry; nothing else names it.
"""
