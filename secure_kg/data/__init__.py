"""Knowledge graphs as clients hold them: reading, dividing among clients, writing client folders.

Modules in dependency order; imports only point up this list, and none of them imports torch:

    readers/       files of any format -> names in chunks, and ids
    graph.py       a client's graph: its vocabularies and its train, valid and test triples in local ids
    triples.py     files of triples by name: found, read whole, written
    vocabulary.py  names <-> ids; repeated triples
    soundness.py   what is wrong with a split: damage, which is refused, and blemishes, which are told
    prefixes.py    short names of IRIs for people
    archives.py    arrays of ids (.npz), and the lists of their names
    federated.py   published federated splits (.npz)
    catalogue.py   data sets that PyKEEN knows
    sources.py     a name, a folder or a file -> the triples to divide
    partition.py   who gets which triple
    folders.py     one folder for each client
    client_data.py a client's graph as the settings of a run name it

Whatever is read here is private to the client that reads it: errors name files and line numbers, never a name or a
triple, and the `repr` of every value shows sizes only.
"""
