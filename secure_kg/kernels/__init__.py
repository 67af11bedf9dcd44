"""Inner loops compiled for the CPU by numba, each with a twin in torch that runs on GPUs and checks it.

They exist where torch needs several passes over a large intermediate or has no fast formulation: pairwise L1 and
complex distances (a quarter of the time of `torch.cdist` with its gradient), ranks that never write a score down,
false negatives. Compiled code is kept beside the modules, as Python keeps its own; the first
process on a machine compiles for some seconds.

Everything here takes numpy arrays, one thread, and leaves the interpreter lock to others while it runs.
"""
