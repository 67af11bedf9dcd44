"""The site of a member of a federation between organisations: one record of openings for all its runs.

A server that is on nobody's side would still see the difference of two runs' sums over different clients. So the record
of the sums that a site has helped to open is of all its runs here, whatever the declared adversary, and lies with its
identity.

The server names a run. It cannot name another one than the one that the member has begun: names are aligned once in a
run, and in another one over other members they would be aligned again. Nor a folder with a run under other settings.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.members import NUMBERS_ALONE, Members
from secure_kg.federation.client.site import Equipment, Followed, OwnSite
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.runs.key_files import record_folder
from secure_kg.runs.run_folder import read_config, write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSite(OwnSite):
    """Its files below `runs`, for as many sessions as a run takes. Data are read once."""

    keys: Path
    """The folder with its record of openings."""
    report: Callable[[str], None]
    members: Members = NUMBERS_ALONE
    """By the roster that this site has accepted."""
    begun: list[Path] = field(default_factory=list)
    """This client's folder of the run that it has begun; empty: the next one that the server names."""
    complete: Path | None = None
    """This client's folder of a run that is complete: another run of that name must not be written over it."""
    named: Callable[[Path], None] = lambda folder: None
    """Called with this client's folder of a run, when a session has begun."""
    follow: Callable[[Followed], None] = lambda client: None
    """Called with the client of each session."""
    _read: list[ClientGraph] = field(default_factory=list, repr=False)

    def folder(self, run_name: str | None) -> Path:
        folder = OwnSite.folder(self, run_name)
        if run_name is not None:
            self._require_same_run(self.runs / run_name)
            if self.complete is not None and folder.resolve() == self.complete.resolve():
                raise UserError(f"{folder}: has the files of a run that is complete; choose another --out")
            if self.begun and folder.resolve() != self.begun[0].resolve():
                raise UserError(
                    f"the server names another run ({folder.parents[1]}) than the one that this site has begun "
                    f"({self.begun[0].parents[1]}); --again takes part in it"
                )
            self.begun[:] = [folder]
            self.named(folder)
        return folder

    def equip(self, folder: Path) -> Equipment:
        equipment = replace(OwnSite.equip(self, folder), follow=self.follow, members=self.members)
        where = folder.parents[1] / "config.toml"
        if not where.exists():  # so that commands that use a trained model find what it was trained on
            write_whole(where, self.config.to_toml().encode())
        return equipment

    def graph(self) -> ClientGraph:
        if not self._read:
            self._read.append(OwnSite.graph(self))
            data = Path(self.config.client_data) if self.config.client_data is not None else None
            how = f", divided by seed {self.config.seed}" if data is not None and data.is_file() else ""
            self.report(_told(self._read[0], how))
        return self._read[0]

    def record(self) -> Path:
        return record_folder(self.keys, self.number)

    def _require_same_run(self, run: Path) -> None:
        if (run / "config.toml").exists() and read_config(run).digest() != self.config.digest():
            raise UserError(f"{run}: has files of a run with other settings; choose another --out")


def _told(graph: ClientGraph, how: str) -> str:
    parts = ", ".join(f"{len(graph.part(part)):,} {part}" for part in ("train", "valid", "test"))
    left_out = f"; left out: {'; '.join(words)}" if (words := list(graph.left_out.phrases())) else ""
    repeats = graph.origin.dropped_repeats
    dropped = f"; {counted(repeats, 'repeated triple')} removed" if repeats else ""
    return (
        f"own data: {len(graph.entities):,} entities, {len(graph.relations):,} relations; "
        f"{parts} triples{how}{dropped}{left_out}"
    )
