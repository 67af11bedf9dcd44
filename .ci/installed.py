"""Steps of `make setup` that look at what is installed.

needs-cuda   exit code 0 if the installed torch is a CUDA build, which needs `requirements-cuda.lock`
trim         remove the packages `benchmarks`, `examples` and `test` that CrypTen's wheel puts beside its own
check        every dependency of every package is there in an accepted version, and what the project uses is importable

A module of CrypTen's `benchmarks` clones a repository and installs packages when it is imported. The project's own
package of that name is not installed: it is found in the project's folder. `configs` stays: CrypTen reads it.
"""

import importlib
import sys
from importlib.metadata import distribution, distributions, requires
from pathlib import Path

from lock import CUDA, NOT_INSTALLED, ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

STRAY = {"benchmarks", "examples", "test"}
USED = ["launch.hosts.mpi", "secure_kg.federation.server.serve", "secure_kg.federation.client.take_part"]
USED += ["launch.audit", "pykeen.datasets", "benchmarks.kge", "benchmarks.pykeen_peer"]
USED += ["phe", "gmpy2", "tenseal"]  # for the score backends, which import them only when they are chosen
USED += ["rdflib.plugins.sparql"]  # the parser of SPARQL, likewise
USED += ["dp_accounting.pld", "dp_accounting.rdp"]  # accountants of differential privacy


def required(name: str, extras: tuple[str, ...] = ("",)) -> list[Requirement]:
    """What an installed package asks for on this machine."""
    found = [Requirement(line) for line in requires(name) or []]
    return [it for it in found if it.marker is None or any(it.marker.evaluate({"extra": extra}) for extra in extras)]


def needs_cuda() -> bool:
    return any(it.name.startswith(CUDA) for it in required("torch"))


def trim() -> None:
    for path in distribution("crypten").files or []:
        if path.parts[0] in STRAY:
            Path(path.locate()).unlink(missing_ok=True)
    site = Path(str(distribution("crypten").locate_file("")))
    for folder in sorted((it for name in STRAY for it in site.glob(f"{name}/**/")), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def unmet() -> list[str]:
    """Dependencies that are missing or have a version their user does not accept."""
    versions = {canonicalize_name(it.name): it.version for it in distributions()}
    wrong = []
    for user in versions:
        for it in required(user):
            name = canonicalize_name(it.name)
            if name in NOT_INSTALLED:
                continue
            if name not in versions:
                wrong.append(f"{user} needs {it}, which is not installed")
            elif not it.specifier.contains(versions[name], prereleases=True):
                wrong.append(f"{user} needs {it}, but {versions[name]} is installed")
    return wrong


def import_used() -> None:
    sys.path.insert(0, str(ROOT))  # benchmarks are not installed
    for module in USED:
        importlib.import_module(module)
    importlib.import_module("protocols.scores.crypten.crypten_import").load_crypten()


def check() -> None:
    wrong = unmet()
    if wrong:
        sys.exit("error: " + "; ".join(wrong))
    import_used()


def main(step: str) -> None:
    if step == "needs-cuda":
        sys.exit(0 if needs_cuda() else 1)
    {"trim": trim, "check": check}[step]()


if __name__ == "__main__":
    main(sys.argv[1])
