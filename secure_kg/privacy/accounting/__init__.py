"""What noise costs in epsilon and delta, and how much of it a budget asks for.

releases.py    a budget, one release, and several releases of one sample as one
gaussian.py    full batches: Gaussian differential privacy, in closed form
renyi.py       Poisson samples at whole Rényi orders, in closed form
sampled.py     Poisson samples: the smaller of two accountants of dp_accounting
spending.py    a filter: releases chosen one after the other under a fixed budget
accountant.py  the front door: epsilon of releases, noise of a budget
shares.py      sums under secure aggregation with shares of noise

Only `sampled.py` needs the package dp_accounting, and imports it when it is asked.
"""
