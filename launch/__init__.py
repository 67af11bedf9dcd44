"""Jobs for mpirun, one module each; every module has `main(argv)` and explains itself with `--help`."""
