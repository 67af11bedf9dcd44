"""What a private set union puts into a masked sum, and what it reads from the total: arithmetic, no conversation.

Each client turns its names into pseudorandom tags (`tags`) and writes them into a table of field elements (`table`),
whose size follows from a public bound on the union (`layout`). The tables are added up, and the tags of the union are
peeled from the total.

Parties:     n >= 2 clients that share a 256-bit key, 1 server that does not have it and is given the sum of the tables.
Adversary:   semi-honest: the server alone, or clients alone.
Reveals:     to the server the union as a set of tags, that is: its size, and pseudonyms without their names. Not who
             holds a tag, and not how many do: an element's weight in the total is the sum of its holders' weights,
             which is uniform in the field for one holder as for all. The distribution of the whole total is a function
             of the union alone, so this is so whether or not peeling succeeds. A client that is given the list of tags
             learns the union's size and, for any name it can guess, whether somebody holds it.
Assumes:     keyed BLAKE2b as a pseudorandom function; a sum that hides its addends (`protocols.secagg`).
Not covered: the server together with a client: the key makes tags of guessed names, and the total less that client's
             own table is the table of the others. For the same reason the total stays with the server, and clients are
             sent tags only, never weights. Sums over different sets of clients, as in another attempt after a dropout:
             a tag of one union that the other lacks belongs to whoever is missing there. Wrong inputs: a client can add
             tags of names that do not exist. Denial of service: a client can fill the table, or write entries that are
             no table; peeling then fails.
Reference:   Goodrich and Mitzenmacher, Allerton 2011, for the invertible Bloom lookup table and its peeling.
Deviations:  - No counts, and sums in a prime field in place of exclusive or: an element held by several clients is
               written several times, each time under a fresh random weight, and is still one element of the total.
             - The check of a cell is a quadratic form of the tag instead of a hash: see `table` for the proof.
"""
