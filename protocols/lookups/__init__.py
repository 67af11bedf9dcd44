"""Lookups: one client asks all others for something that it lacks, and reads an answer of unknown origin.

Nobody knows who holds what. So a request goes, sealed, to all other clients; each answers at the same size, whether or
not it has an answer, and the answers come back as one masked sum that only the asker can read
(`protocols.scores.masked`). It learns what was found and not from whom; the server learns neither the request nor
whether anything was found.

    vectors     rows of a table, or what a client computes from a request: means over those that have an answer
    names       names of positions of a union, from whoever holds them and is willing to say so
    steps       which batch comes next, where that depends on a question: kind and sizes in clear

Parties:     one asker, which is a client; 2 or more others with channels to each other and to it; 1 server.
Adversary:   that of `protocols.scores.masked`: the server, semi-honest or, with signed channels, active, with clients
             on its side up to the declared fraction; the asker, alone or with clients that are not the server.
Reveals:     to the server who asks, when, and how much: how many vectors or names and how wide, and who took part. To
             the other clients the request itself: each must see it to answer it. To the asker, of every vector its mean
             and by how many others it was given, and of every position its name, if somebody named it.
Assumes:     what masked scores assume; for names, that a field element drawn at random is not zero (2^-61).
Not covered: wrong answers. What an answer gives away: a vector that a client computes from its row and the request may
             give the row (clients keep a budget). A client that drops out between two lookups: the asker sees what is
             missing without it. What others conclude from what is asked next.
"""
