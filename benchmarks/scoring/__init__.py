"""Batches of score queries, measured: what `python -m benchmarks.scores` is made of.

    workload   the made-up scores of a measurement, and what every batch must come to
    party      one party's part: all batches in order, and what each has cost it
    carriers   all parties as threads of one process, or one to a rank of mpirun
    figures    costs of all parties as figures per query, and ratios between backends
    peers      the same work by others: one score to a Paillier ciphertext, comparisons by CrypTen
"""
