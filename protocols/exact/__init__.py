"""Exact answers: which positions the stored facts of all clients give together, to the asker alone.

A question is a formula of atoms: intersections, unions and negations. Of every atom each client has a set of positions
of the union, its own stored answers. What is asked for is the formula over the unions of these sets. All clients
compute it together on XOR shares of bits, one bit for each position; a client's own set is its share of it. The server
deals correlated randomness and carries messages between clients, which are sealed end to end
(`protocols.scores.topk`).

    union over clients   not (not x_1 and ... and not x_n), in a tree: one exchange for each level, all atoms at once
    formula              one exchange for each intersection or union, one after the other; negations cost nothing
    answer               everybody sends its shares of the result to the asker, who adds them up

    formula     the formula, as bytes and as a walk over whatever can be joined and inverted
    terms       public parameters, and the sizes of messages
    circuit     the formula on shares
    budget      how many atoms a client answers
    client      the two roles of a client
    server      the server's part

Parties:     n >= 3 clients with channels to each other, one of which asks; 1 server.
Adversary:   semi-honest: up to n - 1 of the clients, or the server alone.
Reveals:     to the asker the set of the formula's answers: nothing of single atoms, of how many clients have a fact, or
             of who has it. To the other clients the atoms and the formula, which each must see to answer. To the server
             who asks, when, how many atoms, and who takes part; not whether parts are joined, or how.
Assumes:     what secret selection assumes.
Not covered: the server together with any client: it knows all masks, and the client all opened values, so that the two
             of them read every set. An active server: false randomness gives a wrong answer, and may tell the asker
             more than the formula does; an audit finds it, and nobody else. An asker, or another client, that opens
             false shares, which may do the same. False facts. What answers give away: a set that one client alone can
             have is that client's; several formulas tell about their common atoms; a client that changes what it tells
             of between two questions shows the difference.

All clients of a session are needed. A result over some of them is none that anybody helps with: a client that is asked
computes with all others that its own configuration names, and takes no exchange without each of them. So there are no
two results over different clients to subtract, whomever a server calls a dropout. A client that tells of nothing takes
part with empty sets, and nobody sees that they are.

Why n - 1 clients learn nothing but the answer. Every value that is opened is an operand of a conjunction under a fresh
uniform mask, of which the remaining client has a share: simulated by uniform bits. Corrections of the dealer are masked
by the remaining client's share of the same product. After the last conjunction, and there is one for n >= 2, the shares
are uniform but for their sum. If the asker is among the n - 1, the simulator has the answer, and the remaining client's
share of it is what is missing from theirs. Which exchanges there are, and their sizes, follow from n, the number of
atoms and the number of positions.

Why the server learns nothing. It draws its own randomness, and all else that it carries is sealed, of sizes that follow
from the same numbers.

Reference:   Goldreich, Micali, Wigderson, STOC 1987, with products from a dealer: Beaver, CRYPTO 1991.
"""
