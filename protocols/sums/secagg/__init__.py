"""Masked sums that survive dropouts: the server learns the sum of the survivors' vectors and no single one of them.

Parties:     n >= 2 clients of one sum, 1 server that relays all messages.
Adversary:   the server together with at most a declared fraction of the clients (`ThreatModel.corrupt`).
             semi-honest: they follow the protocol and pool what they see.
             active: they deviate at will; the clients hold pinned Ed25519 identities (`Credentials`).
Reveals:     the sum over the survivors, and who survived, to the server. Nothing to the clients but the neighbours'
             public keys and which of them dropped out. If the declared bounds are exceeded by dropouts: no sum at all.
Assumes:     computational Diffie-Hellman on Curve25519, HKDF-SHA256 as a random oracle, AES-256 as a pseudorandom
             permutation, AES-GCM as authenticated encryption; against an active server also Ed25519 unforgeability
             and a key directory that the clients have compared over another channel. Against a semi-honest server:
             authentic channels.
Not covered: wrong inputs; what the sums themselves give away, in particular an entry to which one client alone
             contributes, and sums over nearly equal sets of clients; denial of service: any party can end a sum, of two
             clients that disagree about sealed shares nobody knows which is wrong (`refusals`), and a client whose
             opened shares are false is noticed, not identified. More corruption than declared. An active
             server that gives all honest clients the same wrong thing, e.g. a poisoned model.
Reference:   Bonawitz et al., CCS 2017, figure 4; Bell et al., CCS 2020, for the k-regular graph.
Deviations:  - Two kinds of keys: a channel key per session, which encrypts shares, and a mask key per *sum*. Sharing
               out a long-lived mask key would be unsafe: rebuilding it after a dropout would also open that client's
               earlier vectors, whose self masks the server had been given then.
             - A client holds a share of its own self-mask seed.
             - The server checks each rebuilt secret (mask key against its public half, seed against a commitment), so
               that a false share ends the sum instead of spoiling it.
             - All keys, shares and signatures are bound to the terms of the sum: session transcript, round, purpose,
               participants, parameters, group and length. The keys under which clients encrypt shares for each other
               are also bound to a digest of what each has applied of the server's messages, e.g. the global model, to
               the count of holders that it goes by, and to the state of its input. A client masks only with peers whose
               shares it has opened, so clients that have applied different things give no input to one sum.
             - A mask key may be advertised before its sum begins, with what a client says last in the sum before. It is
               bound to the public terms of that very sum, which all compute from the plan. What is not known by then
               (what was applied, the count, the state) is bound into the shares, which are sent when it is. So nothing
               is lost: the input comes after the shares of all peers were opened, as ever. A key whose sum does not
               come, or is not the one it was made for, is thrown away (`session`).
             - Shares are relayed while clients do other work, and opened right before the input (`vectors`).
             - The graph is computed by every client from its own record, not sent by the server; sparse only against a
               semi-honest server, complete otherwise (`params` says why).
             - Clients commit to the states their inputs depend on. A sum that holds the same secret once more is opened
               over the same survivors only, whatever it is called; one of the same round and purpose (a resumed job
               repeats rounds) only if the states of all survivors are the same, too (`openings`).
             - The modulus is 2^32, 2^64 or the prime 2^61 - 1; masks are AES-256-CTR keystreams.
"""
