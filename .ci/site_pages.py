"""Pages of the documentation site that are not in docs/: a hook of mkdocs (`make docs`).

Documents that stand elsewhere in the project are pages of the site, without a copy. Pages about protocols are rendered
from disclosures and docstrings. Links lead to pages whatever document they stand in; the name of a file that is no page
stays as text.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a hook is loaded by its file: the project may be another copy than the installed one

from secure_kg.report.disclosure_pages import page_title, protocol_pages  # noqa: E402

ELSEWHERE: Final = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "protocols/README.md": "protocols/index.md",
    "examples/README.md": "examples/index.md",
    **{f"examples/pictures/{one.name}": f"examples/pictures/{one.name}" for one in ROOT.glob("examples/pictures/*")},
}
"""Documents outside of docs/ with their pictures, and where they are in the site."""
_FENCED = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_OPTION = re.compile(r"<code>(--[\w-]{1,24}(?: [\w-]{1,12})?)</code>")
_CELL = re.compile(r"<td>(.{40,}?)</td>")
_FIGURE = re.compile(r"<td>([-\d.,+−±%() ]{1,20})</td>")
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages about protocols follow the page that lists them; a document that no section names is a concept."""
    sections: dict[str, list[Any]] = {title: pages for section in config.nav or [] for title, pages in section.items()}
    named = {page for pages in sections.values() for entry in pages for page in entry.values()}
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    sections["Concepts"] += sorted(written - named)
    sections["Protocols"] += [{page_title(kind): _page_of(kind)} for kind in protocol_pages(ROOT)]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for document, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / document)))
    for kind, text in protocol_pages(ROOT).items():
        files.append(File.generated(config, _page_of(kind), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    return outside_fences(markdown, lambda text: _ROW.sub(_pipes, _LINK.sub(_Links(page.file.src_uri), text)))


def on_page_content(html: str, **_: Any) -> str:
    """Options are not broken after their two hyphens, nor figures; cells with sentences are marked as such."""
    marked = _CELL.sub(lambda cell: f'<td class="words">{cell[1]}</td>' if _words(cell[1]) else cell[0], html)
    marked = _FIGURE.sub(r'<td class="figure">\1</td>', marked)
    return _OPTION.sub(r'<code class="option">\1</code>', marked)


def outside_fences(markdown: str, change: Any) -> str:
    """A text changed everywhere but in fenced blocks."""
    parts, at = [], 0
    for fenced in _FENCED.finditer(markdown):
        parts += [change(markdown[at : fenced.start()]), fenced[0]]
        at = fenced.end()
    return "".join([*parts, change(markdown[at:])])


class _Links:
    """Links of one page: from where its document stands to where pages are."""

    def __init__(self, page: str) -> None:
        home = {to: document for document, to in ELSEWHERE.items()}.get(page, f"docs/{page}")
        self._page, self._folder = page, posixpath.dirname(home)

    def __call__(self, link: re.Match[str]) -> str:
        mark, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        path = posixpath.normpath(posixpath.join(self._folder, target))
        to = ELSEWHERE.get(path) or (path[len("docs/") :] if path.startswith("docs/") else "")
        if not to and (ROOT / path).exists():
            return text if text.startswith("`") else f"`{text}`"
        to = posixpath.relpath(to or path, posixpath.dirname(self._page) or ".")
        return f"{mark}[{text}]({to}{anchor})"


def _words(cell: str) -> bool:
    return len(re.sub(r"<[^>]+>", "", cell)) > 40


def _pipes(row: re.Match[str]) -> str:
    """A row of a table whose code has bars: here a bar in code needs no backslash, and would show it."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0])


def _page_of(kind: str) -> str:
    return f"protocols/{kind}.md"
