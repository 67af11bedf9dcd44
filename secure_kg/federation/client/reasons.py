"""Why a client cannot go on: what the server reads of it, and what only the client's own console says.

Names of files and folders may tell of a client as its triples do. The server reads texts that name none; in place of
any other text it reads a sentence that is always the same.
"""

from typing import Final

from protocols.foundation.errors import ProtocolError
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import DataError, InternalError, SettingsError, TrainingDiverged

OWN_DATA: Final = "its data cannot be read; the details are with the client"
OWN_FILES: Final = "it cannot go on; the details are with the client"
OWN_FAULT: Final = "internal error; the details are with the client"


def for_server(problem: Exception, config: RunConfig) -> str:
    """The words for the server."""
    if isinstance(problem, ProtocolError | SettingsError | TrainingDiverged):
        return str(problem)
    if isinstance(problem, DataError):
        # A data set that the settings name is the same for all, and they have its name.
        return str(problem) if config.client_data is None else OWN_DATA
    return OWN_FAULT if isinstance(problem, InternalError) else OWN_FILES


def for_own_console(problem: Exception, config: RunConfig, client: int) -> str | None:
    """The line that a client must show itself; None if the server was told as much."""
    text, whose = str(problem), f"client {client}: "
    return None if for_server(problem, config) == text else whose + text.removeprefix(whose)
