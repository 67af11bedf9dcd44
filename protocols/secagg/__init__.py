"""Pairwise-masked sums: the server learns the sum of the clients' vectors and no single one of them.

Parties:     n >= 2 clients, 1 server that relays all messages.
Adversary:   a semi-honest server together with all but two of a sum's participants, semi-honest too.
Reveals:     the sum over the round's participants (to the server), and who took part. With all but two participants on
             the server's side the sum still hides how those two share it; with all but one, nothing, as in any sum.
Assumes:     authentic channels, computational Diffie-Hellman on Curve25519, HKDF-SHA256 as a random oracle,
             AES-256 as a pseudorandom permutation.
Not covered: a server that replaces public keys or tells clients different things; a participant that falls silent
             (the round ends without a sum); wrong inputs; what the sums themselves give away, in particular a row to
             which one client alone contributes, and sums over nearly equal sets of clients.
Reference:   FedR (Zhang et al., Findings of EMNLP 2022), appendix C, after Bonawitz et al., CCS 2017.
Deviations:  the mask s_{u,v} is not drawn and sent but derived: X25519 agreement once per session, then a fresh
             AES-256-CTR keystream per round, pair and purpose; the modulus is 2^32 or 2^64 instead of a prime.
"""
