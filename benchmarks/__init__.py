"""Benchmarks of the protocols. Each compares side by side in one run, for machines are noisy."""
