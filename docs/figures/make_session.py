"""Draw `session.svg`: a real session in a terminal, in which the same federation is audited under masks and in clear.

Usage: python docs/figures/make_session.py [FILE]    (about a minute; the folder is that of the project)

The commands are run in a folder of their own. Of each output the picture has the lines that a pattern asks for, as they
are, and a mark where lines are missing. A pattern without a line ends the program.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).resolve().parents[2]
JOB: Final = "fede -n 4 --rounds 10 --transcript"
SESSION: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (f"{JOB} --out runs/secure", (r"^FedE: ", r"^aggregation was", r"^alignment was")),
    (
        "audit runs/secure --truth runs/secure/clients --out audits/secure",
        (r"succeeded", r"^│ reconstruct-fede-100 ", r"^findings: "),
    ),
    (
        f"{JOB} --aggregation plain --alignment plain --out runs/plain",
        (r"^aggregation was", r"^alignment was", r"┃ run ", r"^│ secure ", r"^│ this run "),
    ),
    (
        "audit runs/plain --truth runs/plain/clients --out audits/plain",
        (r"succeeded", r"^│ reconstruct-fede-100 ", r"^high .* names$", r"^high .* rows and", r"^findings: "),
    ),
)
"""Commands of `secure-kg`, and which lines of what they say are shown."""
COLUMNS: Final = 108
_WIDTH, _HEIGHT, _MARGIN = 8.0, 19, 18
_COLOURS: Final = (
    (r"^\$ ", "#ffffff"),
    (r"^findings: 0 high", "#7ee787"),
    (r"^(high|findings)", "#ff9492"),
    (r"^⋮", "#8b949e"),
    (r"", "#c9d1d9"),
)


def said(command: str, folder: Path) -> list[str]:
    """What a command says, line by line. An audit with findings has the exit code 3."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "launch.cli", *command.split()]
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return done.stdout.splitlines()


def shown(command: str, lines: list[str], patterns: tuple[str, ...]) -> list[str]:
    """The prompt and the lines that patterns ask for, with a mark wherever something is missing."""
    for pattern in patterns:
        if not any(re.search(pattern, line) for line in lines):
            raise SystemExit(f"secure-kg {command}: no line for {pattern}")
    picked, before = [f"$ secure-kg {command}"], -1
    for number, line in enumerate(lines):
        if any(re.search(pattern, line) for pattern in patterns):
            picked += ["⋮"] * (number > before + 1)
            picked += wrapped(line)
            before = number
    return [*picked, ""]


def wrapped(line: str) -> list[str]:
    """A long line as a terminal shows it, but broken between words."""
    parts = []
    while len(line) > COLUMNS:
        cut = line.rfind(" ", 0, COLUMNS) + 1
        parts.append(line[:cut].rstrip())
        line = "  " + line[cut:]
    return [*parts, line]


def drawing(lines: list[str]) -> str:
    """The picture. Every line has its length, so that columns stand below each other in any font."""
    width, height = 2 * _MARGIN + COLUMNS * _WIDTH, 2 * _MARGIN + len(lines) * _HEIGHT
    texts = []
    for number, line in enumerate(lines):
        colour = next(colour for pattern, colour in _COLOURS if re.search(pattern, line))
        place = f'x="{_MARGIN}" y="{_MARGIN + 14 + number * _HEIGHT}" textLength="{len(line) * _WIDTH:g}"'
        if line:
            texts.append(f'<text {place} fill="{colour}" xml:space="preserve">{escape(line)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}"'
            " font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\""
            ' font-size="13">',
            "<title>secure-kg: the same federation audited under masks and in clear</title>",
            '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
            *texts,
            "</svg>\n",
        ]
    )


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        lines = [line for command, patterns in SESSION for line in shown(command, said(command, Path(name)), patterns)]
    path.write_text(drawing(lines[:-1]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("session.svg"))
