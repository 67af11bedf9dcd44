"""Answering a question over the graphs of several clients, each with its part of a model that they trained together.

    requests    what an asker writes in a sealed request, at a size that follows from numbers alone
    plan        the lookups that a question takes, by depth
    terms       the public parameters of every step; free of torch, since a server makes them too
    rules       what a client says to others, by its own decision
    formulas    a question as atoms and a formula, for exact answers
    facts       what one client has stored, and which of it it tells
    knowledge   what one client knows: rows, relations, scores, names
    run_terms   what the settings of a run say about questions
    files       what a client knows, from the files of a run
    session     keys, budgets and protocol clients of one party
    asking      the asker: from a question to ranked and named answers
    answering   every other client
    serving     the server, and the record of what it saw
    telling     a client that cannot go on says so
    parts       the clients' parts as wholes, whatever carries them
    in_process  all parties as threads of one process
    over_run    a finished run as everybody knows it, and its server
    members     its clients, each from its own folder
    costs       bytes of lookups in closed form
    learned     what each party learns, from the disclosures

Parties:     one asker and 2 or more other clients, which hold a model; 1 server.
Adversary:   that of lookups of vectors and names (`protocols.lookups`) and of the chosen score backend.
Reveals:     to the server who asks, when, and of the question how many lookups it takes, of which kind and size. To the
             other clients the entities and relations of the question, the points along its way, the points that are
             scored (but not if these are hidden), and for which positions names are asked. To the asker the points that
             it asked for and how many gave each, its answers, and the names that somebody gave; of exact answers the
             stored facts that they are, as far as clients tell of them.
Assumes:     what the protocols assume; that clients hold models of one run.
Not covered: what an answer gives away: of a model whose relations translate, one answer is a relation's row, and of
             others a few are, so clients keep a budget. What a series of questions tells
             (`secure_kg.attacks.questions`). Wrong answers of clients.
"""
