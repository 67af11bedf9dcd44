"""What an asker computes from answers to questions that it is free to choose (`secure_kg.queries.retrieval`).

    parties          the clients of a run, with rules and budgets of an attack's choice
    curious          an asker that keeps to the protocol and asks for what it likes, in real sessions
    relation_rows    rows of relations that others hold, from points before and after a projection
    hidden_triples   triples of a relation that nobody projects along for others
    predicting       how well guessed tails of triples match the true ones
    name_guesses     whether somebody holds a name
    opened_scores    rows of entities from opened means, or from the best positions
    recorded_updates what a server reads in uploads of a recorded run, by rounds

Attacker:  one client that asks, semi-honest: it sends only what the protocol lets it send. In `recorded_updates` it is
           the server.
Has:       its own graph, its own model, its positions, and the answers that it reads.
Truth:     other clients' graphs and models are read to score a guess, never to make it.
"""
