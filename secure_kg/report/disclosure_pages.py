"""Pages about protocols for the documentation site, from disclosures and from the docstrings of their modules."""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from protocols.foundation.disclosure import NOTHING, Disclosure, Fields, Subject
from secure_kg.report.disclosure_tables import IN_GENERAL, markdown_table, run_protocols, score_protocols

_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "sums": ("Sums", "How contributions of clients are added up. Chosen by `--aggregation`."),
    "holders": ("Counts of holders", "How many clients hold a row, before rows are added up. Chosen with the sum."),
    "alignment": ("Alignments", "How clients find out which of their rows are the same. Chosen by `--alignment`."),
    "session": ("Sessions", "What clients agree on before the first sum."),
    "scores": ("Scores", "How scores of clients become the answers of one of them. Chosen by `--scores`."),
    "lookups": ("Lookups", "What an asker is told of vectors and names on the way of a question."),
    "exact": ("Exact answers", "What the stored facts of all clients give. Chosen by `--exact`."),
}
"""By the first folder of a protocol's place: the heading of its page, and what its protocols are for."""


def protocol_pages(packages: Path) -> dict[str, str]:
    """Markdown by the name of its page, one for each kind of protocol. `packages`: where the folder `protocols` is."""
    by_kind: dict[str, list[Disclosure]] = {}
    for one in (*run_protocols(), *score_protocols()):
        by_kind.setdefault(one.place.partition("/")[0], []).append(one)
    return {kind: _page(kind, members, packages) for kind, members in by_kind.items()}


def page_title(kind: str) -> str:
    """The heading of a kind's page; a kind that nobody has described yet has its own name."""
    return _KINDS.get(kind, (kind.capitalize(), ""))[0]


def _page(kind: str, members: Iterable[Disclosure], packages: Path) -> str:
    what = _KINDS.get(kind, ("", ""))[1]
    return "\n\n".join([f"# {page_title(kind)}", what, *(_section(one, packages) for one in members)]) + "\n"


def _section(one: Disclosure, packages: Path) -> str:
    parts = [f"## {one.title[0].upper()}{one.title[1:]}", f"`protocols/{one.place}`", _learned(one)]
    facts = {
        "stands against": one.against,
        "a client on the server's side opens to it": one.with_a_client,
        "assumes": one.assumes,
        "not covered": one.not_covered,
        "sums over different clients add": one.changing_clients,
    }
    parts.append(markdown_table(("", ""), [[f"**{name}**", text] for name, text in facts.items() if text]))
    parts += _messages("What the server sees in its messages", one.fields)
    parts += _messages("What it sees besides, against an active server", one.signed_fields)
    if text := _docstring(one.place, packages):
        parts += ["The docstring of the module:", f"```text\n{text}\n```"]
    return "\n\n".join(parts).format_map(IN_GENERAL)


def _learned(one: Disclosure) -> str:
    asked = any(told.asker != NOTHING for told in one.learned.values())
    head = ["about", "the server learns", "another client learns", *(["the asker learns"] if asked else [])]
    rows = [(subject, one.learned[subject]) for subject in Subject if subject in one.learned]
    return markdown_table(
        head, [[about.value, told.server, told.client, *([told.asker] if asked else [])] for about, told in rows]
    )


def _messages(heading: str, fields: Fields) -> list[str]:
    body = []
    for message, named in fields.items():
        rows = [[f"`{name}`", seen.field_class, seen.meaning] for name, seen in named.items()]
        for number, row in enumerate(rows or [["", "", "that it was sent: it has no fields"]]):
            body.append(["" if number else f"`{message.__name__}`", *row])
    return [f"{heading}:", markdown_table(("message", "field", "class", "the server saw"), body)] if body else []


def _docstring(place: str, packages: Path) -> str:
    """Of a module or package, without importing it, and with braces that stay as they are."""
    folder = packages / "protocols" / place
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.replace("{", "{{").replace("}", "}}")
