"""Confidential statements among unrestricted ones: DPKGE, made sound.

Reference:   Han et al., "A framework for differentially-private knowledge graph embeddings", J. Web Semantics 2022.
Parties:     one holder of a graph K = U ∪ C, who trains. U is unrestricted, hence public; C is confidential.
Adversary:   whoever gets the model, also after every step, and knows U, all settings and the seed.
Reveals:     (ε, δ) of the noised steps on C. Steps on U are post-processing. Unit: one confidential statement,
             added or removed.
Assumes:     public entity and relation sets; marks that follow a public rule; the operating system's randomness.
Not covered: evaluation and tracing, which are computed in clear for the holder; settings chosen by results.

Deviations from the paper, each of which its guarantee needs: noise falls on all rows, not on those of the batch only;
the clip and TransM's weights come from U; the balance of batches counts passes, so that the size of C does not enter;
batches of C are full or Poisson samples, which is what the accountant counts on; the loss of a statement and its
negatives is clipped as one; negatives are not compared with C.

| module | what |
|---|---|
| `marking` | which statements are confidential: by predicate, by file, by fraction |
| `schedule` | algorithm 1: the balanced choice of batches |
| `training` | plain steps on U, noised steps on C |
| `printed` | noise on touched rows only, as printed: not sound |
| `tracing` | confidential statements against held-out ones, and the paper's own test |
| `clustering` | clusters of entity rows, compared with those without privacy |
| `neighbours` | ranks of a statement with it in training and without it |
| `arms` | the arms of the paper's tables on one graph, with a statement of privacy |
| `figures` | figures of all arms: link prediction, tracing, clusters |
"""
