"""Filtered ranking. `sums` is free of torch; `answers` is the filter; `ranking` scores and counts."""
