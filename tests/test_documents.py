"""Documents and code: every module, file, message and command that a document names exists; one word per concept."""

import ast
import functools
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_dependency_direction import PACKAGE_NAMES, SOURCES, all_imports, package_imports

ROOT = Path(__file__).parents[1]
PACKAGES = ("protocols", "secure_kg", "launch", "benchmarks", "tests")
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "protocols/*.md")
    for path in ROOT.glob(pattern)
)
BASES = {"SECURITY.md": ("", "tests"), "protocols/README.md": ("", "protocols")}
"""Folders that the paths of a document count from; elsewhere it is the project's."""
INNER = {name.partition(".")[2].partition(".")[0] for name in PACKAGE_NAMES if "." in name}
"""First packages inside the top-level ones. A name that begins with one of them is not said in full."""
FILES = ("json", "jsonl", "html", "safetensors", "bin", "toml", "npz", "log", "txt", "py", "md", "lock")
BROUGHT_BY_OTHERS = {"DistMult", "RotatE", "ComplEx", "MessagePack"}

MODULE = re.compile(r"(?<![\w./-])([a-z]\w*(?:\.\w+)+)(?![\w./-]*/)")
PATH = re.compile(r"(?<![\w./-])((?:[\w-]+/)+(?:[\w.-]*\w)?|[\w-]+\.(?:py|md|toml|lock|txt)\b)")
KIND = re.compile(r"^[A-Z][a-z]+(?:[A-Z][a-z]+)+$")


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def quoted(text: str) -> list[str]:
    """What stands in backticks, outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@functools.cache
def names_in(module: str) -> frozenset[str]:
    """What a module defines at its top, and the members of its classes."""
    tree = ast.parse(SOURCES[module])
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for inner in node.body for name in assigned(inner)}
        found |= set(assigned(node))
    return frozenset(found)


def assigned(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


FRONT_DOORS = ("protocols", "secure_kg")
"""Packages that load names of other modules when they are asked for."""


def exists(dotted: str) -> bool:
    """Whether a full name is a module, a package, or something that a module defines."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module, rest = ".".join(parts[:length]), ".".join(parts[length:])
        if module in SOURCES:
            lent = dir(import_module(module)) if module in FRONT_DOORS else []
            return not rest or rest in names_in(module) or rest in lent
    path = ROOT.joinpath(*parts)
    return parts[0] == "tests" and (path.is_dir() or path.with_suffix(".py").is_file())


def missing_modules(text: str) -> list[str]:
    """Modules in backticks, and of commands, that are not there or are not said in full."""
    named = [name for words in quoted(text) for name in MODULE.findall(words)]
    commands = re.findall(r"python -m ([\w.]+)", text)
    ours = [
        name for name in named if name.split(".")[0] in (*PACKAGES, *INNER) and name.rpartition(".")[2] not in FILES
    ]
    return [name for name in (*ours, *(name for name in commands if "." in name)) if not exists(name)]


def missing_files(text: str, bases: tuple[str, ...] = ("",)) -> list[str]:
    """Files and folders of the project in backticks that are not there. Those of a run are not looked at.

    A file without its folder is looked for in the folders that the text names, with a slash at their end.
    """
    found = []
    text = re.sub(r"New file\s+`[^`]+`", "", text)  # of a recipe
    bases += tuple(words for words in quoted(text) if words.endswith("/") and (ROOT / words).is_dir())
    for words in quoted(text):
        for path in PATH.findall(words):
            if path.startswith(("runs/", "build/")):  # of a user, who may have some here
                continue
            ours = any((ROOT / base / path.split("/")[0]).exists() for base in bases) or path.endswith((".py", ".md"))
            candidates = [ROOT / base / written for base in bases for written in (path, f"{path}.py")]
            if ours and not any(candidate.exists() for candidate in candidates):
                found.append(path)
    return found


def missing_links(text: str, folder: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [target for target in targets if "://" not in target and not (folder / target).exists()]


@functools.cache
def classes() -> frozenset[str]:
    return frozenset(name for module in SOURCES for name in names_in(module))


def missing_kinds(text: str) -> list[str]:
    """Messages and classes in backticks that nobody defines."""
    return [name for name in quoted(text) if KIND.match(name) and name not in classes() | BROUGHT_BY_OTHERS]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_module_that_a_document_names_exists(document: str) -> None:
    assert missing_modules(text_of(document)) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_a_document_names_exists(document: str) -> None:
    assert missing_files(text_of(document), BASES.get(document, ("",))) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_of_a_document_leads_somewhere(document: str) -> None:
    assert missing_links(text_of(document), (ROOT / document).parent) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_message_that_a_document_names_exists(document: str) -> None:
    assert missing_kinds(text_of(document)) == []


def test_the_documents_were_read() -> None:
    assert {"README.md", "SECURITY.md", "docs/architecture.md", "protocols/README.md"} <= set(DOCUMENTS)
    assert len(quoted(text_of("docs/architecture.md"))) > 50


@pytest.mark.parametrize(
    "text",
    [
        "see `protocols.sums.secret_aggregation`",
        "`secure_kg.federation.client.client.ClientOfNobody`",
        "`federation.server.server`",
        "    python -m launch.fedx --rounds 5",
    ],
)
def test_a_module_that_is_missing_or_not_said_in_full_is_noticed(text: str) -> None:
    assert missing_modules(text)


def test_names_that_are_there_pass() -> None:
    text = (
        "`protocols.bundles.Aggregation`, `protocols.bundles.Registry.register`, `np.random`, `python -m launch.fede`"
    )
    assert missing_modules(text) == []
    assert missing_files("`protocols/sums/`, `clients/K/pid`, `launch/main.py`") == []
    assert missing_kinds("`AdvertiseKeys`, `Back`, `CHANGELOG`") == []


def test_files_links_and_messages_that_are_missing_are_noticed() -> None:
    assert missing_files("`protocols/secagg/__init__.py` and `trainer.py`") == [
        "protocols/secagg/__init__.py",
        "trainer.py",
    ]
    assert missing_links("[a](nowhere.md) [b](README.md#part) [c](https://example.org)", ROOT) == ["nowhere.md"]
    assert missing_kinds("`AdvertiseNothing`") == ["AdvertiseNothing"]


# --- packages and modules in dependency order -------------------------------------------------------------------------


def first_cells(document: str, after: str) -> list[str]:
    """The names in the first column of the first table after a heading."""
    table = re.search(r"(?:^\|.*\n)+", text_of(document).partition(after)[2], re.MULTILINE)
    assert table is not None
    rows = table[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_table_of_packages_is_complete_and_in_dependency_order() -> None:
    listed = first_cells("docs/architecture.md", "## Rooms")
    assert sorted(listed) == sorted(PACKAGE_NAMES - {"secure_kg"})  # which has names of others, and its version
    place = {name: index for index, name in enumerate(listed)}
    graph = package_imports(all_imports())
    wrong = [(ours, used) for ours in listed for used in graph.get(ours, ()) if place[used] >= place[ours]]
    assert wrong == []


def test_the_list_of_protocol_modules_is_complete_and_in_dependency_order() -> None:
    listed = [f"protocols.{name.strip('/').replace('/', '.')}" for name in first_cells("protocols/README.md", "# ")]
    modules = {name for name in SOURCES if name.startswith("protocols.")} - PACKAGE_NAMES
    assert sorted(listed) == sorted(modules)
    place = {name: index for index, name in enumerate(listed)}
    wrong = [
        (found.module, found.name)
        for found in all_imports()
        if found.module in place and found.name in place and place[found.name] > place[found.module]
    ]
    assert wrong == []


@pytest.mark.parametrize("part", ["client", "server"])
def test_every_file_of_the_two_roles_is_described(part: str) -> None:
    listed = first_cells("docs/architecture.md", f"### The {part}")
    package = f"secure_kg/federation/{part}"
    assert sorted(listed) == sorted(path.name for path in (ROOT / package).glob("[a-z]*.py"))


# --- one word per concept ---------------------------------------------------------------------------------------------

FOR_DROPOUTS = re.compile(
    r"(?i)\b(?:silent|silence|(?:is|was|are|were|been) left out|lost clients?|clients? (?:that|who) (?:is|was|are) lost"
    r"|(?:sums?|it|is|was|are|were) (?:is |was |are |were |that was )?given up|gives? (?:a sum|sums|it) up)\b"
)


def prose(text: str) -> str:
    """A document without rendered tables, code, quoted names and links."""
    for part in (r"<!-- rendered:.*?<!-- end of [^>]*-->", r"```.*?```", r"`[^`\n]+`", r"\]\([^)]*\)"):
        text = re.sub(part, "", text, flags=re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name != "docs/glossary.md"])
def test_dropouts_and_abandoned_sums_have_one_word_each(document: str) -> None:
    assert [found[0] for found in FOR_DROPOUTS.finditer(prose(text_of(document)))] == []


def glossary() -> list[str]:
    return re.findall(r"^\*\*(.+?)\*\*", text_of("docs/glossary.md"), re.MULTILINE)


def test_the_glossary_is_in_alphabetical_order_and_has_the_words() -> None:
    words = glossary()
    assert words == sorted(set(words), key=str.lower)
    expected = "participant survivor dropout abandon unmask open holder round session run block row union position"
    expected += " alignment aggregation twin plan learner host transcript receipt opening state lineage disclosure"
    expected += " bundle declaration semi-honest active corrupt"
    assert set(expected.split()) <= set(words)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_the_glossary_is_linked(document: str) -> None:
    assert "docs/glossary.md" in text_of(document)
