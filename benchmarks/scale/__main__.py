"""`python -m benchmarks.scale`."""

import sys

from benchmarks.scale.command import main

sys.exit(main())
