"""The k best positions and nothing else, to the asker alone: secret shuffle, then selection on opened comparisons.

All clients compute together on additive shares in Z_2^64 (bits: XOR shares). A client's own scores are its share of the
sums, so sharing them costs nothing. The server deals correlated randomness and carries messages between clients, which
are sealed end to end: it sees no value that is opened.

    weights      Counts of givers are sums of private bits. One table look-up per position (`shares.look_up`) turns a
                 count c into shares of L / c, with L = lcm(1..n), and of whether it is zero.
    keys         One product per score gives shares of mean times L. A key is that number, less a penalty where nobody
                 gave a score, above the position's bits: no two keys of a query are equal, of equal means the lower
                 position has the larger key, and the lowest bits of a key say which position it is of, and whether
                 anybody gave a score of it.
    shuffle      Each client in turn permutes the shares of the keys of every query, by a permutation from its seed
                 (`shares.shuffle`). Then all of them put their shares into one more order, from a secret that the
                 asker has sealed for all clients and the server lacks (`shares.in_common_order`).
    selection    Keys are compared, and the bits opened to all clients, until the k largest are known in order
                 (`selection`).
    answer       Everybody sends the lowest bits of its shares of these k keys to the asker, who adds them up.

Parties:     n >= 3 clients, or 2 and an asker outside, with channels to each other; 1 server.
Adversary:   semi-honest: up to n - 1 of the clients, or the server alone.
Reveals:     to the asker its answers. To the other clients nothing but when they are asked, and with `least` of 2 or
             more, of every position how many other scorers hold it, up to `least` - 1, and so who does, where askers
             change or attempts are repeated over other scorers. To the server who takes part, and
             how many comparisons each step has.
Assumes:     AES-256 as a pseudorandom generator, AES-256-GCM, HKDF-SHA256. Between a client and the server a link that
             other clients cannot read: the dealt randomness passes there.
Not covered: the server together with any client: it knows all masks and permutations, and the client all opened
             values, so that the two of them read every score. An active server: false randomness gives a wrong answer,
             and may give away more; nothing notices. Dropouts: all clients are needed, and a batch without one of them
             is abandoned. Wrong scores. What an answer gives away: that these positions score highest, whoever gave the
             scores.
Reference:   none for federated graphs. Secret shuffle and opened comparisons: Hamada et al., ICISC 2012. Permutation
             correlations from a dealer: Chase, Ghosh, Poburinnaya, ASIACRYPT 2020. Table look-up: Ishai et al., TCC
             2013. Comparison: Damgard et al., TCC 2006, with a parallel-prefix borrow.

Why n - 1 clients learn nothing but the answer. All but the opened comparison bits and the answer is opened under fresh
uniform masks of which the remaining client has a share: simulated by uniform values. So are corrections of the dealer:
the remaining client's share of the same correlation masks them, unless they are sent to that client. The keys of a
query are distinct, and the remaining client has put them in an order that is uniform and independent of everything
else: its permutation comes from its seed, which nobody but the server has besides. The common order is known to all
clients. It moves what was shuffled by a permutation that does not depend on the shuffle, and a uniform order stays
uniform. So the ranks of the shuffled keys are a uniform permutation of 0..N-1, whatever the scores are. Which
comparisons are made, and their bits, are a function of these ranks (`selection.best` sees nothing but bits). They are
simulated by drawing a permutation from N and running the same selection on it, with k. Another attempt has another
shuffle, and another permutation in the simulation. If the asker is among the n - 1, the simulator has the answer, and
from it the lowest bits of the k largest keys: where fewer than k positions have a score, the next ones are the lowest
of all other positions, in order. The remaining client's shares of these bits are what is missing from the others'
shares. Without the shuffle, or with equal keys, the bits would depend on the scores. The tests run such variants
against the same simulator (`protocols.ideal.client_selection`) and tell them apart.

Why the server learns nothing. It draws its own randomness, and all else that it carries is sealed. It sees how many
comparisons each step has: a function of the ranks of the keys in the order in which they are compared. The shuffle
hides nothing from it, since it dealt the seeds of all permutations. What hides the ranks is the common order: to the
server a uniform permutation for each query (AES-256 under a key from a secret of the batch that it never has), drawn
apart from scores and seeds. Put after any fixed permutation it makes the ranks a uniform permutation of 0..N-1,
independent of the seeds. So the numbers of comparisons are simulated from N and k, beside seeds that the simulator
deals as the server does, or picks as it likes. A server that tries many seeds, or picks them after it has seen the
asking, gains nothing: for every choice of seeds the ranks have the same distribution, and each attempt has another
secret. Without the common order the server would find out of 64 candidates which query was asked (tests have that
variant, and tell it apart). Against clients the common order does nothing, and against the server the shuffle does
nothing: both are needed.
"""
