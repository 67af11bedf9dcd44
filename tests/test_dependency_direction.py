"""Imports point one way: launch -> secure_kg -> protocols -> protocols.primitives; benchmarks may look at all of them.

Read from the source with `ast`, so that imports inside functions and under TYPE_CHECKING count as well.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["launch", "secure_kg", "protocols", "benchmarks"]
FORBIDDEN_FORMATS = ("pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib")
# What a package must not import, by prefix.
FORBIDDEN = {
    "protocols": ("secure_kg", "launch", "benchmarks"),
    "protocols.foundation": ("protocols.primitives", "protocols.transport", "protocols.session", "protocols.sums"),
    "protocols.primitives": ("protocols.transport", "protocols.session", "protocols.foundation.wire"),
    "protocols.sums.plain": ("protocols.sums.secagg", "protocols.sums.secret"),
    "protocols.alignment.plain": ("protocols.sums.secagg", "protocols.alignment.psu"),
    "protocols.holders.plain": ("protocols.sums.secagg", "protocols.holders.secret"),
    "secure_kg": ("launch", "benchmarks", "protocols.primitives"),
    "launch": ("benchmarks", "protocols.primitives"),
}
SEEDED_RANDOMNESS = ("random", "numpy.random", "torch.random", "torch.cuda.random")
RANDOM_ATTRIBUTES = {"random", "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"} | {
    "manual_seed", "bernoulli", "multinomial", "normal", "default_rng", "Generator", "RandomState", "initial_seed",
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    """`name` as imported by `module`; of `from a import b` both `a` and `a.b` are listed."""

    module: str
    name: str
    at_module_level: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def nodes_of(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it is in a function."""
    waiting = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        yield node, inside
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting.extend((child, inside) for child in ast.iter_child_nodes(node))


def imports_of(module: str, source: str) -> Iterator[Import]:
    for node, inside in nodes_of(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{module} uses a relative import, which this test does not follow")
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            first = node.args[0]
            names = [first.value] if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
        for name in names:
            yield Import(module, name, at_module_level=not inside)


def within(name: str, *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def wrong_directions(imports: list[Import]) -> list[Import]:
    return [
        found
        for found in imports
        for package, forbidden in FORBIDDEN.items()
        if within(found.module, package) and within(found.name, *forbidden)
    ]


def seeded_randomness(module: str, source: str) -> list[str]:
    """Generators that a seed can repeat: they have no place where secrets are made."""
    imported = [found.name for found in imports_of(module, source) if within(found.name, *SEEDED_RANDOMNESS)]
    used = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in RANDOM_ATTRIBUTES
    ]
    return imported + used


SOURCES = {
    module_name(path): path.read_text("utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}
PACKAGE_NAMES = {module_name(path) for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")}


@cache
def all_imports() -> list[Import]:
    """Of every module. Read when a test asks: parsing takes longer than collecting a hundred other tests."""
    return [found for module, source in SOURCES.items() for found in imports_of(module, source)]


def test_the_packages_were_read() -> None:
    assert {module.split(".")[0] for module in SOURCES} == set(PACKAGES)
    seen = {(found.module, found.name) for found in all_imports()}
    # One of each direction that is allowed, so that an empty list of imports cannot pass for a clean one.
    assert ("protocols.sums.secagg.client", "protocols.primitives.prg") in seen
    assert ("secure_kg.federation.server.gathering", "protocols.session.conversation") in seen
    assert ("launch.hosts.mpi", "secure_kg.federation.server.serve") in seen


def test_imports_point_one_way() -> None:
    assert wrong_directions(all_imports()) == []


def test_the_modules_of_protocols_have_an_order() -> None:
    graph = {
        module: {
            found.name
            for found in all_imports()
            if found.module == module and found.name in SOURCES and within(found.name, "protocols")
        }
        - {module, "protocols"}
        for module in SOURCES
        if within(module, "protocols")
    }
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    wire, transport, conversation = (
        order.index(f"protocols.{name}") for name in ("foundation.wire", "transport.base", "session.conversation")
    )
    assert wire < transport < conversation


def package_of(module: str) -> str:
    """The package a module belongs to; a package belongs to itself."""
    return module if module in PACKAGE_NAMES else module.rpartition(".")[0]


def package_imports(imports: list[Import]) -> dict[str, set[str]]:
    """Which package imports which other one."""
    graph: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    for found in imports:
        named.setdefault(found.module, set()).add(found.name)
    for found in imports:
        name = found.name if found.name in SOURCES else ""
        ours, theirs = package_of(found.module), package_of(name)
        submodules = {other for other in named[found.module] if within(other, name)}
        if not name or ours == theirs or (name in PACKAGE_NAMES and len(submodules & SOURCES.keys()) > 1):
            continue  # `from package import module` is an import of the module
        graph.setdefault(ours, set()).add(theirs)
    return graph


def test_packages_have_an_order() -> None:
    list(TopologicalSorter(package_imports(all_imports())).static_order())  # raises CycleError


def test_no_module_reads_formats_that_can_run_code() -> None:
    assert [found for found in all_imports() if within(found.name, *FORBIDDEN_FORMATS)] == []


def test_protocols_take_no_randomness_that_a_seed_can_repeat() -> None:
    found = {
        module: seeded
        for module, source in SOURCES.items()
        if within(module, "protocols") and (seeded := seeded_randomness(module, source))
    }
    assert found == {}


def test_mpi_is_started_by_its_transport_and_otherwise_only_when_a_job_asks() -> None:
    using = [found for found in all_imports() if within(found.name, "mpi4py")]
    assert {found.module for found in using if found.at_module_level} == {"protocols.transport.mpi"}
    assert all(within(found.module, "launch", "benchmarks", "protocols.transport.mpi") for found in using)
    # Importing the transport starts MPI as well.
    by_transport = [found for found in all_imports() if within(found.name, "protocols.transport.mpi")]
    carried = {found.module for found in by_transport if found.at_module_level}
    assert [module for module in carried if not within(module, "benchmarks")] == []


# --- the checks can fail --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("protocols.foundation.wire", "import secure_kg"),
        ("protocols.foundation.wire", "from launch import main"),
        ("protocols", "import benchmarks.overhead as overhead"),
        ("protocols.primitives.prg", "from protocols.foundation import wire"),
        ("protocols.sums.plain", "from protocols.sums.secagg.client import SecAggClient"),
        ("secure_kg.data.graph", "from launch.hosts.mpi import run_rank"),
        ("secure_kg", "def late():\n    from protocols.primitives import prg"),
        ("secure_kg", "from protocols import primitives"),
        ("secure_kg", "if TYPE_CHECKING:\n    from protocols.primitives.keys import AgreementKey"),
        ("secure_kg", "import importlib\nimportlib.import_module('benchmarks')"),
        ("launch.main", "import protocols.primitives.group"),
        ("launch.main", "import benchmarks"),
    ],
)
def test_a_wrong_direction_is_noticed(module: str, source: str) -> None:
    assert wrong_directions(list(imports_of(module, source)))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("protocols.sums.secagg.client", "from protocols.primitives import prg"),
        ("secure_kg.federation.client.client", "from protocols.sums.secagg.sums import SecAggSumClient"),
        ("launch.main", "from secure_kg.foundation.errors import UserError"),
        ("benchmarks.overhead", "import launch.main, secure_kg, protocols.primitives.prg"),
        ("protocols.foundation.wire", "import protocols_of_others, secure_kgx"),
    ],
)
def test_a_right_direction_passes(module: str, source: str) -> None:
    assert wrong_directions(list(imports_of(module, source))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import Random",
        "from numpy import random",
        "import numpy.random",
        "import numpy as np\nnp.random.default_rng(0)",
        "import torch\ntorch.randn(3)",
        "import torch\ntorch.Generator()",
        "import torch\ntorch.rand_like(x)",
        "from torch.random import manual_seed",
    ],
)
def test_seeded_randomness_is_noticed(source: str) -> None:
    assert seeded_randomness("protocols.any", source)


def test_secrets_are_no_seeded_randomness() -> None:
    assert seeded_randomness("protocols.any", "import secrets\nsecrets.token_bytes(16)") == []


# --- what a server's process loads ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    [
        *("secure_kg.federation.server.serve", "secure_kg.queries.retrieval.serving"),
        *("launch.hosts.mpi", "launch.hosts.job", "launch.hosts.questions"),
    ],
)
def test_the_server_loads_no_model_code(module: str) -> None:
    heavy = ["torch", "numba", "pykeen", "pandas", "mpi4py", "secure_kg.models.base", "secure_kg.learning.kge"]
    code = f"import {module}, sys; print(sorted(set({heavy}) & sys.modules.keys())); print({module!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


@pytest.mark.long
def test_a_client_does_load_it() -> None:
    """Else the test above would pass by looking at the wrong names."""
    code = "import secure_kg.federation.client.client, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr
