"""Membership attacks: does a client train on this triple? DP-FLames (section 3), as printed and mended.

    measures        AUC with its interval, true positives at 1 % of false ones, F1 beside that of always-yes
    plausibility    a triple's score by rows that an attacker has
    targets         canaries, real members against held-out triples, corrupted tails
    server_attacks  A_SI, on uploads and on means
    client_attacks  A_CIP (passive) and A_CIA (active)
    watching        learners that keep what they upload and receive
    server_view     rows in the server's view, from a tap or a transcript
    staged          a federation in one process with an attacker, a victim and a bystander
    experiment      all attacks on a staged federation
    recorded        the server's attacks on a recorded run
"""
