"""Inner loops compiled for the CPU by numba, each with a twin in torch that runs on GPUs and checks it.

They exist where torch needs several passes over a large intermediate or has no fast formulation: distances with the
loss and its gradient, rows that Adam moves when they are read, ranks that never write a score down, false negatives.
`lanes` has sixteen floats as one value, for loops whose order of sums must not depend on the machine.

Compiled code is kept beside the modules, as Python keeps its own; the first process on a machine compiles for some
seconds.
Everything here takes numpy arrays, one thread, and leaves the interpreter lock to others while it runs.
"""
