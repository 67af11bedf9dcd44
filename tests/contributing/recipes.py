"""Recipes of CONTRIBUTING.md, carried out: new files, lines of a module, entries of a table."""

import ast
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("protocols", "secure_kg", "launch", "pyproject.toml")
STEP = re.compile(
    r"(?P<how>New file|In)\s+`(?P<path>[^`]+)`(?:, into `(?P<name>\w+)`)?:\n\n```python\n(?P<code>.*?)```", re.DOTALL
)


@dataclass(frozen=True)
class Step:
    """One step: a new file, lines for a module, or an entry of one of its tables."""

    path: str
    code: str
    new: bool
    table: str | None

    def carry_out(self, project: Path) -> None:
        path = project / self.path
        if self.new:
            assert not path.exists()
            path.write_text(self.code, encoding="utf-8")
            return
        source = path.read_text(encoding="utf-8")
        changed = with_lines(source, self.code) if self.table is None else with_entry(source, self.table, self.code)
        path.write_text(changed, encoding="utf-8")


def recipes() -> dict[str, list[Step]]:
    """By heading; headings without steps are left to the reader."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add something")[2]
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    found = {}
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        steps = [
            Step(step["path"], step["code"], step["how"] == "New file", step["name"]) for step in STEP.finditer(body)
        ]
        assert len(steps) == body.count("```python"), f"a block of '{heading}' does not say where it belongs"
        if steps:
            found[heading] = steps
    return found


def with_lines(source: str, code: str) -> str:
    """Imports after the last import of the module, everything else at its end."""
    tree, added, lines = ast.parse(source), ast.parse(code), code.splitlines()
    imports = [node for node in added.body if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in added.body if node not in imports]
    last = max(node.end_lineno or 0 for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))

    def text_of(nodes: list[ast.stmt]) -> list[str]:
        return [line for node in nodes for line in lines[node.lineno - 1 : node.end_lineno]]

    written = source.splitlines()
    return "\n".join([*written[:last], *text_of(imports), *written[last:], *text_of(rest)]) + "\n"


def with_entry(source: str, table: str, entry: str) -> str:
    """One more entry at the end of the tuple or dictionary that is assigned to `table`."""
    (value,) = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and re.match(rf"{table}\b", ast.unparse(node))
    ]
    assert value is not None
    literal = next(node for node in ast.walk(value) if isinstance(node, ast.Tuple | ast.Dict))
    assert literal.end_lineno is not None
    assert literal.end_col_offset is not None
    lines = source.splitlines(keepends=True)
    end = sum(len(line.encode()) for line in lines[: literal.end_lineno - 1]) + literal.end_col_offset - 1
    before, after = source.encode()[:end].decode(), source.encode()[end:].decode()
    comma = "" if before.rstrip().endswith(",") else ", "
    return f"{before.rstrip()}{comma}{entry.strip()},\n{after}"


def copy_of_the_project(to: Path) -> Path:
    """With what Python and numba have compiled: they know a file by its time, which the copy keeps."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name)
        else:
            shutil.copy(ROOT / name, to / name)
    return to
