"""One thread per test process, as in every rank of a job: several of them share the cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
