"""Private set union: clients align their names without telling them to the server, and nobody learns who holds what.

Each client turns its names into pseudorandom tags under a key that the server lacks (`tags`) and writes them into a
table of field elements (`table`), whose size follows from a public bound on the union (`layout`). The tables are added
up by a masked sum. The server peels the tags of the union from the total, deals out positions at random and publishes
numbers by which a client finds the positions of its own tags, but no list of tags (`places`). If a table cannot be
peeled there is another attempt with a larger one and fresh keys (`attempts`), three in all. Before they go on, clients
vote in secret on what they were sent (`vote`). `union` is the conversation, `simulation` all its parties in one
process. Where the server is meant to have the names, `names` tells it, and still not who holds them.

Parties:     n >= 2 clients that share a 256-bit key (`protocols.session.group_key`), 1 server that does not have it.
Adversary:   semi-honest: the server alone, or clients alone, any number of them. The masked sums stand against more
             (the server with a share of the clients, an active server): what that leaves is under Not covered.
Reveals:     to the server the size of the union, and of each attempt the total of all tables: tags, which are
             pseudonyms without their names, each with a weight. Not who holds a tag, and not how many do: a weight in
             the total is the sum of its holders' weights, which is uniform in the field for one holder as for all. The
             distribution of the total is a function of the union alone, so this is so whether or not peeling succeeds.
             Who took part, and who dropped out. To a client the number of attempts, the size of the union, the
             positions of its own names, and that each position has exactly one name of the union, under a map from all
             names to positions that it can compute. So a guessed name is ruled out if it meets one of the client's a
             positions (probability a / m for a name that is not in the union of m), but never confirmed, unless the
             client is certain of a list that contains the whole union and the name is alone of that list in its
             position (`places`). What each client has learned, several can put together.
Assumes:     keyed BLAKE2b as a pseudorandom function; the group key; a sum that hides its addends
             (`protocols.sums.secagg`).
Not covered: the server together with a client. With the key they make tags of guessed names and see which are in the
             union; and the total less that client's own table is the table of the others, so they see which of the
             client's names somebody else holds too. Which of several others it is, and how many, stays hidden. With two
             clients there is only one other. For the same reason the total stays with the server: neither tags nor
             weights are sent to anybody.
             Dropouts between attempts, unless clients commit to their names (`union.join`, `state`): the sizes of two
             unions can be compared, and the difference is the number of names that only those who are missing hold.
             With commitments no second attempt is opened over other clients, and the alignment ends instead. An active
             server can send wrong places, to some or to all: clients whose places differ in anything cannot add up
             afterwards, because a digest enters the keys of their later sums (`Positions.digest`), the vote being the
             first of them. Wrong places that are the same for all can put names of different clients into one row,
             which spoils the result; names of one client in one row make all clients stop alike, and the server learns
             one bit: that some client holds both (`vote`).
             Wrong inputs: a client can add any names to its own. Of each it then learns what it learns of its own
             names, so a guess is confirmed by whatever tells a holder of others (`protocols.holders.secret`). Denial of
             service: a client can fill the table, or write entries that are no table, or vote against the result; after
             three attempts all stop.
Reference:   Goodrich and Mitzenmacher, Allerton 2011, for the invertible Bloom lookup table and its peeling. Botelho,
             Pagh and Ziviani, WADS 2007, for numbers on cells that add up to positions.
Deviations:  - No counts, and sums in a prime field in place of exclusive or: an element held by several clients is
               written several times, each time under a fresh random weight, and is still one element of the total.
             - The check of a cell is a quadratic form of the tag instead of a hash: see `table` for the proof.
             - The function from names to positions is to be no test of membership: cells that are free and the order
               of positions are random, drawn once for each union.
"""
