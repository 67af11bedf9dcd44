"""Checks of packages: those that a run needs, and the extras, as the project's own metadata lists them."""

import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from launch.checkup.finding import Finding, graded

_PROJECT: Final = "secure-kg"
_REQUIREMENT: Final = re.compile(r"^(?P<name>[\w.-]+)\s*(?:\(?>=\s*(?P<least>[\d.]+)\)?)?(?P<more>.*)$")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")
_ESSENTIAL: Final = "packages"
_USES: Final = {
    "dp": "differential privacy (--dp)",
    "sparql": "questions in SPARQL",
    "paillier": "--scores paillier",
    "bfv": "--scores bfv",
    "mpc": "CrypTen in benchmarks",
    "parquet": "files in Parquet",
    "docs": "the site of the documents",
    "peer": "benchmarks beside Flower",
    "dev": "tests and style",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package, and the least version of it."""

    name: str
    least: str
    extra: str | None

    @property
    def installed(self) -> str | None:
        try:
            return importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:
            return None

    @property
    def met(self) -> bool:
        there = self.installed
        return there is not None and _numbers(there) >= _numbers(self.least)

    @property
    def wanted(self) -> str:
        return f"{self.name}>={self.least}" if self.least else self.name


def packages() -> Iterator[Finding]:
    """One line for what every run needs, and one for each extra."""
    try:
        found = list(_requirements(importlib.metadata.requires(_PROJECT) or []))
    except importlib.metadata.PackageNotFoundError:
        yield Finding(_ESSENTIAL, "note", f"{_PROJECT} is not installed, so its list is not here", "pip install -e .")
        return
    yield _group(_ESSENTIAL, [one for one in found if one.extra is None], essential=True)
    for extra in dict.fromkeys(one.extra for one in found if one.extra is not None):
        yield _group(f"extra {extra}", [one for one in found if one.extra == extra], essential=False)


def _requirements(lines: list[str]) -> Iterator[Requirement]:
    for line in lines:
        needed, _, marker = line.partition(";")
        if (parts := _REQUIREMENT.match(needed.strip())) is not None:
            extra = _EXTRA.search(marker)
            yield Requirement(parts["name"], parts["least"] or "", extra[1] if extra else None)


def _group(about: str, needed: list[Requirement], *, essential: bool) -> Finding:
    missing = [one for one in needed if not one.met]
    there = ", ".join(f"{one.name} {one.installed}" for one in needed if one.met)
    lacks = ", ".join(f"old {one.name} {one.installed}" if one.installed else f"no {one.name}" for one in missing)
    use = _USES.get(about.removeprefix("extra "), "")
    install = "pip install " + " ".join(f'"{one.wanted}"' for one in missing)
    return graded(
        about,
        f"{use}: {'; '.join(part for part in (lacks, there) if part)}".removeprefix(": "),
        problem=essential and bool(missing),
        note=bool(missing),
        next_step=install,
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
