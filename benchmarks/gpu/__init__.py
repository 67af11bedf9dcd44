"""Is a GPU's result that of the CPU? What `benchmarks.gpu_check` and `tests/gpu` have in common.

pretended   a GPU that is pretended, for machines without one
cases       every learner that the registries name, small
twins       learners, kernels, ranks and marks on a device beside their CPU twins, with bounds and their reasons
speed       triples per second of a device
federation  a job under mpirun, one rank per GPU, and its plain twin
page        the page for people
"""
