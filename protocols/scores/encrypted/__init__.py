"""Encrypted scores: masked vectors under the asker's public key, which the server adds up without reading them.

A scorer takes part in a masked sum (`protocols.sums.secagg`), but sends its masked vector encrypted for the asker. The
server adds the ciphertexts. It runs the masked sum beside them on vectors of zeros, which ends in minus the sum of all
masks that are left: the *correction*. It adds a fresh encryption of the correction and hands the total to the asker,
who decrypts it. The correction also serves dropouts: no scorer ever sends its scores of one batch a second time.

Two ciphers: `paillier` and `bfv`. `sums` has the protocol, `scheme` what it asks of a cipher.

Parties:     2 or more scorers with channels to each other and to the asker, 1 asker, 1 server.
Adversary:   semi-honest: the server with some of the scorers; or the server with the asker and some of the scorers, up
             to the declared fraction of the clients; or the asker with some of the scorers.
Reveals:     to the server who has contributed, sizes, when who asks, and the correction. To the asker the sums and
             counts over the contributors. To other clients what `protocols.scores.masked` tells them of holders.
Assumes:     what `protocols.sums.secagg` assumes; of the cipher, that it is semantically secure (`paillier`, `bfv`).
Not covered: an active server. It may add whatever it likes to a total, since ciphertexts are malleable, and nobody
             notices. Wrong scores. What means give away (`protocols.scores.masked`). Time that a computation takes:
             big-number arithmetic is not of constant time.
Reference:   Paillier, EUROCRYPT 1999; Damgard, Jurik, Nielsen, IJIS 2010; Fan, Vercauteren, 2012/144;
             Bonawitz et al., CCS 2017, for the masks.
Deviations:  what is encrypted is masked as well: in the usual protocol, scores under an additive cipher, the asker with
             the server reads every single client.

Why the server reads nothing. Without the asker it has ciphertexts under a key that is not its own, and masks, which are
independent of the scores. Replace the scorers' vectors by zeros, one after the other: whoever tells the difference
breaks the cipher.

Why the asker and the server together read the sum and no more. Let x_i be the vector of contributor i, y_i its masked
vector, and c the correction, so that the sum of all y_i and c is the sum of all x_i, in the group. Every y_i holds the
self mask of i. The seeds of self masks are opened by the unmasking step, as in every masked sum, and with them the sum
of the x_i; beyond that the y_i are what the masked sum shows its server, which is simulated from the sum
(`protocols.sums.secagg`). What is done to the y_i, that is encryption, addition and decryption, needs no other secret
of a scorer, so the simulator does it as well.

Why the asker alone reads no more than the sum, although a ciphertext carries more than its plaintext does. Decryption
shows it carries between slots (`paillier`) or noise (`bfv`), and both depend on the single y_i and on c. But the masks
are unknown to the asker: to it the y_i are uniform and independent, and c is what is left to the sum. A simulator draws
such y_i and c for a sum that it is given, and encrypts and adds them like the server. This holds for whatever the asker
sees of the ciphertexts, all of them included.

What a false key of the asker does. The same argument holds for any key, even one under which encryption is no more than
a change of notation: what a scorer encrypts is masked. So an asker that gives a weak key gives away what it could read
itself, the sum, to whoever can break that key, and nothing of a single scorer. It may get no answer, or a wrong one. It
may cost the others time, up to what a key of the agreed length costs: other lengths are refused. Scorers take the key
from the asker alone: its digest is sealed together with the queries, so the server cannot put in a key of its own.
"""
