"""The documentation site: it builds without a warning, every link leads somewhere, and nothing comes from elsewhere."""

import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAGE_OF = {
    "SECURITY.md": "security.html",
    "CONTRIBUTING.md": "contributing.html",
    "CHANGELOG.md": "changelog.html",
    "protocols/README.md": "protocols/index.html",
    "README.md": "index.html",
    "examples/README.md": "examples/index.html",
}
ASSETS = {"script": ("src",), "img": ("src", "srcset"), "link": ("href",), "iframe": ("src",), "source": ("src",)}
FIGURES = {"object": ("data",), "video": ("src",), "audio": ("src",), "embed": ("src",)}
NO_ASSET = {"canonical", "next", "prev", "edit", "alternate"}
"""Kinds of `link` that a browser does not load."""


@dataclass
class Read(HTMLParser):
    """One page: its anchors, its links, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        for name in {**ASSETS, **FIGURES}.get(tag, ()):
            if named.get(name) and not (tag == "link" and named.get("rel") in NO_ASSET):
                self.loaded.append(named[name])


def read(path: Path) -> Read:
    page = Read()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(site: Path, pages: dict[str, Read]) -> Iterator[str]:
    """Links within the site to files or anchors that are not there."""
    for name, page in pages.items():
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            if path.startswith("/"):  # the page of unknown addresses: from wherever the site is served
                target = path[1:] or "index.html"
            else:
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if (site / target).is_dir():
                target = posixpath.join(target, "index.html")
            known = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors
            if not (site / target).is_file() or not known:
                yield f"{name}: {link}"


def foreign(pages: dict[str, Read]) -> list[str]:
    """What pages load from elsewhere."""
    return [f"{name}: {asset}" for name, page in pages.items() for asset in page.loaded if urlsplit(asset).netloc]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(to)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return to


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Read]:
    return {path.relative_to(site).as_posix(): read(path) for path in site.rglob("*.html")}


@pytest.mark.long
def test_every_document_is_a_page(site: Path) -> None:
    written = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [name for name in (*map(str, written), *PAGE_OF.values()) if not (site / name).is_file()] == []


@pytest.mark.long
def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path, pages: dict[str, Read]) -> None:
    assert len(pages) > 30
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert list(broken(site, pages)) == []


@pytest.mark.long
def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[str, Read]) -> None:
    assert foreign(pages) == []
    sheets = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert sheets
    assert [
        found for text in sheets for found in re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+", text)
    ] == []
    drawn = [path.read_text(encoding="utf-8") for path in site.rglob("*.svg")]
    assert all(not re.search(r"(?:href|src)=[\"']?https?:", text) for text in drawn)


@pytest.mark.long
def test_pages_about_protocols_say_what_disclosures_say(site: Path) -> None:
    sums = (site / "protocols/sums.html").read_text(encoding="utf-8")
    assert "their sums only, over the survivors" in sums
    assert "Bonawitz et al., CCS 2017" in sums  # of the docstring
    assert "MaskedInput" in sums
    interfaces = (site / "api/interfaces.html").read_text(encoding="utf-8")
    assert "Replace a block by rows" in interfaces


def test_broken_links_and_foreign_assets_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html#y">b</a><a href="#x">x</a><a href="c.html">c</a></p>')
    (tmp_path / "b.html").write_text('<img src="https://example.org/a.png"><script src="//example.org/x.js"></script>')
    pages = {name: read(tmp_path / name) for name in ("a.html", "b.html")}
    assert sorted(broken(tmp_path, pages)) == ["a.html: b.html#y", "a.html: c.html"]
    assert foreign(pages) == ["b.html: https://example.org/a.png", "b.html: //example.org/x.js"]
