"""A whole federation in one process: real clients, a real server and real protocols, as threads.

keywords.py  settings by keyword, with errors in the words of a caller
own_data.py  triples that a caller has in memory, as the folders of clients
parties.py   the parties of a run as threads, and their end on Ctrl-C
simulate.py  `simulate`, and the result with its folder

Nothing is protected: whoever calls this has all triples in one place. It shows what a federation would give, what it
would cost, and what its server would see.
"""
