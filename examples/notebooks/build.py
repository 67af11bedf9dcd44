"""Write the notebooks: run the cells of each script beside this file in order, and store what comes out.

python examples/notebooks/build.py

`# %%` begins a cell of code, `# %% varies` one whose output differs from run to run, `# %% [markdown]` one of text.
"""

import ast
import contextlib
import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPTS = ("first_steps.py", "what_leaks.py")
_MARK = "# %%"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a notebook."""

    kind: str
    source: str
    varies: bool = False


def cells_of(script: str) -> list[Cell]:
    """The cells of a script."""
    found = []
    for part in ("\n" + script).split(f"\n{_MARK}")[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = [line.removeprefix("#").strip() for line in body.strip().split("\n")]
            found.append(Cell("markdown", "\n".join(lines)))
        else:
            found.append(Cell("code", body.strip(), varies="varies" in head))
    return found


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of one cell in the namespace `names`: what it prints, and its last expression."""
    tree, value, printed = ast.parse(source), None, io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(text)})
    if value is not None:
        outputs.append({"output_type": "execute_result", "data": _shown(value), "metadata": {}})
    return outputs


def notebook(script: str) -> dict[str, Any]:
    """The notebook of a script, its cells run in one fresh namespace."""
    cells, names, count = list[dict[str, Any]](), dict[str, Any](), 0
    for number, cell in enumerate(cells_of(script)):
        name = hashlib.sha256(f"{number} {cell.source}".encode()).hexdigest()[:8]
        entry: dict[str, Any] = {"cell_type": cell.kind, "id": name, "metadata": {}, "source": _lines(cell.source)}
        if cell.kind == "code":
            count += 1
            outputs = run_cell(cell.source, names)
            for output in outputs:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count
            entry |= {"execution_count": count, "outputs": outputs}
            entry["metadata"] = {"tags": ["varies"]} if cell.varies else {}
        cells.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _shown(value: Any) -> dict[str, Any]:
    """Every form in which the value shows itself."""
    forms = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
    data = {kind: _lines(getattr(value, name)()) for kind, name in forms.items() if hasattr(value, name)}
    return {**data, "text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    for name in SCRIPTS:
        made = notebook((HERE / name).read_text(encoding="utf-8"))
        path = HERE / Path(name).with_suffix(".ipynb")
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
