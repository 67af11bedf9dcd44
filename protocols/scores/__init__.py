"""Aggregation of scores: one party asks, everybody scores the entities it holds, and the asker reads an answer.

Functionality. n clients hold parts of a union of N positions. In a batch of Q queries, every client scores the
positions that it holds. The *asker* is one of them, or a party outside with a public key; the others are *scorers*. By
backend (`protocols.registry.SCORES`), the asker reads the mean over the holders of every position, or nothing but its k
best positions, in order. The server reads who took part. Other clients read nothing.

Every backend gives the same ranking to the last bit: scores are rounded to the same fixed point (`terms`), means are
compared as exact fractions, and of equal means the lower position comes first (`ranking`).

The holder rule. A scorer gives its score of a position only if at least `least` scorers hold that position: a mean over
the asker and one other client is that client's score. `least` = 1 leaves nothing out. What the asker holds itself
counts in any case. A position to which nobody gives a score is no answer, so a batch may have fewer answers than k.

The steps of a batch:

    asking        the asker seals a fresh secret and the queries for every scorer (`asking`); no scorer answers a batch
                  that only the server wants
    holders       scorers count who holds what (`protocols.holders`), once per batch, if `least` is 2 or more
    the backend   the scores, added up or compared
"""
