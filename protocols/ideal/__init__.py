"""The ideal side of every protocol: simulators that write the server's view from what it is allowed to learn.

The claim of a protocol is that the server learns its output and nothing else. Said precisely: there is a simulator that
is given the output alone, no input of any client, and writes views that nobody can tell from real ones, not even
somebody who knows all inputs. These modules are the simulators. A view is the sequence of frames at the server's end,
in both directions, with headers, purposes and sizes (`views`). `real` makes the real views to compare with, `opened`
reads from a view of either kind all that the server can compute from it.

    masked sums        given who dropped out in which step, and each sum                      `masked_sum`
    group key          given who was there                                                   `group_key`
    secret sums        given who dropped out in which step                                   `secret_sum`
    counts of holders  given who dropped out in which step                                   `count`
    private union      given that, and the size of the union; for `psu.names` the names      `union`
    masked scores      given who dropped out in which step                                   `scores`
    secret selection   given N, k and who asks                                               `scores`
    encrypted scores   given who dropped out in which step; with the asker the sum as well   `encrypted_scores`
    hidden queries     given N, k, who asks, dimensions and branches                         `hidden_queries`
    scores by CrypTen  given N, k, who asks                                                  `crypten_scores`
    cheated sums       given the server's lie, and the sum if the others open it             `cheated`

Some views are not the server's: a client's in a count of holders (`client_count`), that of all clients but one in a
secret selection, given the answer (`client_selection`), and what scorers see of hidden queries, and the asker of tables
(`hidden_queries`).

Parties:     the server, alone; for encrypted scores also with the asker. (With more clients on its side more is to be
             simulated; see `docs/real-or-ideal.md`.)
Adversary:   semi-honest: the server's own messages are what the honest server makes of what it has received. In
             `cheated` it is active and lies to clients in a masked sum, about a mask key or about who survives.
Assumes:     what the protocols assume. Each simulator names, step by step, what it puts in place of what, and the
             assumption under which nobody notices: these are the hybrids of the proof.
Not covered: times; the order in which the answers of one step arrive, which is the network's; sums that end without a
             result, but for cheated ones; whatever else an active server does; several sessions whose inputs repeat.
Reference:   Bonawitz et al., CCS 2017, section 6 and appendix A (theorems for the semi-honest server).
"""
