"""Attacks on a view. Each module states who attacks, what it has, and what it gains.

An attack is a function of a view and of named knowledge, and returns a guess; a score compares the guess with the truth
and returns an `AttackResult` beside what chance gets. Truth never enters an attack.

    result                  what an attack achieved, and when that counts as success
    uploads                 the server's view of one round: rows as it decodes them, names it was sent
    knowledge, truth        what a colluding client gives away; what really is at a client
    reconstruct             all reconstruction attacks on one client: FedR's tables 1 and 4, and stricter ones
    single_holder           rows in a sum of their own
    differencing            sums subtracted from each other
    interpolation           sums before and after a dropout, interpolated to it
    static_perturbation     FedCQA's secret aggregation as published, and ours
    weak_seed               masks from seeds of few bits
    extraction              trained rows from answers to chosen queries; tried on real ones by extraction_attempts
"""
