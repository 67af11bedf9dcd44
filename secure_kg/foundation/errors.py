"""Errors a user can mend.

They end a job with one line on standard error and a non-zero exit code, and they may travel to the server.
So their text names places (file, line, option), never contents: no entity, relation or value of a client's graph.
"""


class UserError(Exception):
    """Something the user can mend: a wrong option, a malformed file, a diverged training."""


class DataError(UserError):
    """A data set, a client folder or a split that cannot be used."""


class TrainingDiverged(UserError):
    """Local training produced a value that is not finite."""
