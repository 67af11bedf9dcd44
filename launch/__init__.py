"""The commands, one thin module each; every one has `main(argv)` and explains itself with `--help`.

`cli` is the console script `secure-kg`; `hosts` is what carries the parties of a job.
"""
