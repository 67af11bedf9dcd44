"""Reading `tests/vectors/`: JSON files, each headed by the source of its values."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "vectors"


def vectors(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def unhex(*texts: str) -> bytes:
    return bytes.fromhex("".join(texts))
