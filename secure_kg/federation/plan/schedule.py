"""When things happen in a run: pure, from its settings alone."""

from typing import Final

AGREEING_ROUND: Final = 1
"""The round in which clients train nothing and agree on first rows."""
