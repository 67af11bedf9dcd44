"""Moving frames between one server and its clients: `base` is the interface; `in_process` (threads), `mpi` and `https`
carry it.

A transport promises delivery in order per pair of parties while both live, and nothing else: no secrecy, no
authenticity, though `https` has both. Protocols must be secure against whoever reads the wire, the server included.
"""
