"""Files of an export: for their owner alone, and whole or not there."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import DRAFT

_DIGITS: Final = ".9g"
"""So many digits give a 32-bit number back to the last bit."""


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """A text file in UTF-8, piece by piece: a table of a large graph as text would not fit into memory."""
    draft = path.with_name(path.name + DRAFT)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        draft.replace(path)
    except OSError as problem:
        raise UserError(f"{path}: cannot be written ({problem.strerror})") from None
    except UnicodeEncodeError:
        raise UserError(f"{path}: a name is not valid Unicode") from None
    finally:
        draft.unlink(missing_ok=True)


def numbers(row: Iterable[float], between: str) -> str:
    """A row of 32-bit numbers as text, from which they can be read back exactly."""
    return between.join(format(float(value), _DIGITS) for value in row)
