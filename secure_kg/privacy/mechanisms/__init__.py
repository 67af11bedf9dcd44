"""Mechanisms: how the clipped sums of a step become something that may be seen. One module each.

Each is a frozen record of settings with `releases()`, what a step costs an accountant, and `privatise()`.

| module | mechanism |
|---|---|
| `sgd` | noise on all rows |
| `adafest` | rows chosen by noised counts; noise on those (Ghazi et al., NeurIPS 2023) |
| `flames` | DP-FLames, mended: rows chosen by a gap between norms |
| `flames_printed` | DP-FLames as printed: not sound, and never lets a gradient through |
| `no_noise` | the clipped sums themselves, for comparison |
| `counts` | a table of counts, without any training: the control that every table of results needs |
"""
