"""Snippets of the documents: fenced blocks of `bash` and `python`, with the output that a `text` block shows.

A block that cannot run here has a comment before it: `<!-- not run: reason -->`.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+?) -->\n\n)?^```(?P<kind>bash|python)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Snippet:
    """One block."""

    kind: str
    code: str
    output: str | None
    """What it must say, if the document shows that."""
    reason: str | None
    """Why it is not run."""


def snippets(document: str) -> list[Snippet]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return [Snippet(one["kind"], one["code"], one["output"], one["reason"]) for one in _BLOCK.finditer(text)]


def blocks(document: str) -> int:
    """How many fenced blocks of these kinds a document has, by another way of counting."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return sum(line in ("```bash", "```python") for line in text.splitlines())


def run_python(code: str, names: dict[str, Any]) -> str:
    """What the lines say, in one session for all blocks that are given the same names."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "snippet", "exec"), names)
    return said.getvalue()


def run_shell(code: str, folder: Path) -> str:
    """What the commands say, as in a shell with the project's environment; the first one that fails ends them."""
    tools = folder / ".tools"
    tools.mkdir(exist_ok=True)
    script = tools / "secure-kg"  # this copy of the project, wherever another one is installed
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m launch.cli "$@"\n')
    script.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "HYDI"))}
    places = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**inherited, "PATH": places, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def run(snippet: Snippet, folder: Path, names: dict[str, Any]) -> None:
    """A block, with what it says compared with what the document shows."""
    if snippet.reason is not None:
        return
    said = run_python(snippet.code, names) if snippet.kind == "python" else run_shell(snippet.code, folder)
    if snippet.output is not None:
        assert said == snippet.output
