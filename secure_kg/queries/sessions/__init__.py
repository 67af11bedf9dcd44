"""Sessions of questions between organisations: who asks, with which settings, and what a site checks before it answers.

    messages    what passes before a session begins: who is here, who asks, and that a session begins
    statement   what an asker says and signs: all settings on which parties must agree
    site_rules  what a site answers, by its own decision
    seen        statements that a site has answered, so that none counts twice
    checks      all of this together, before a site makes any key

Parties:     one asker and the other members of a federation, each with the roster that its coordinator has signed; 1
             server, which passes statements on.
Adversary:   the server and other members, as far as they would ask in a member's name, ask again, or tell sites
             different settings. In a session that has begun, that of the run (`secure_kg.queries.retrieval`).
Reveals:     to the server and all members who asks, when and with which settings.
Assumes:     Ed25519; that sites have the roster; clocks that agree within `statement.WINDOW_SECONDS`.
Keeps:       a site begins a session only for a statement that the asker's identity has signed, over this federation and
             the model that the site has, not before and not long ago; within its own rules. What was stated enters all
             keys of the session (`statement.greeting`): sites that were told different things share none.
Not covered: a server that begins no session, or begins those of some askers later. With semi-honest settings a server
             that breaks the protocol can announce the steps of a session that the asker has begun: it spends that
             asker's share of the budgets, never another's.
"""
