"""The front door: `load_run` opens the folder of a finished run, and its clients' models answer by name. Free of torch
until a model is loaded."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from secure_kg.federation.plan.settings import Device, RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import named_clients
from secure_kg.runs.records.fusion import FusionRecord
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder, read_config, read_record

if TYPE_CHECKING:
    from secure_kg.trained.asking import Answers
    from secure_kg.trained.auditing import AuditOutcome
    from secure_kg.trained.client_model import ClientModel
    from secure_kg.trained.result import RunResult

_FUSION = "fusion.json"


@dataclass(frozen=True, slots=True, repr=False)
class TrainedRun:
    """A run that has come to its end, or the fusion of two."""

    path: Path
    settings: RunConfig
    """Of a fusion those of its federated run."""
    summary: Summary | None
    """None where the server's part of the folder is elsewhere, and for a fusion."""
    fusion: FusionRecord | None = None

    @property
    def clients(self) -> tuple[int, ...]:
        """Clients whose models are in this folder."""
        if self.fusion is not None:
            return tuple(one.client for one in self.fusion.clients)
        names = [path.parent.name for path in self.path.glob("clients/*/model.safetensors")]
        return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit()))

    def client(self, number: int | None = None, device: Device = "cpu") -> "ClientModel":
        """The trained model of a client; without a number, that of the only one whose model is here.

        `device`: where it computes, as `--device` takes it.
        """
        if number is None:
            if len(self.clients) != 1:
                raise UserError(f"{self.path}: has the models of {self._whose()}: say which (--client K)")
            (number,) = self.clients
        if not isinstance(number, int) or not 1 <= number <= (self.settings.clients or 0):
            raise UserError(f"client {number}: the run has clients 1 to {self.settings.clients}")
        if self.clients and not (self.path / "clients" / str(number)).is_dir() and self.fusion is None:
            raise UserError(f"{self.path}: has the model of {self._whose()} only; client {number} is elsewhere")
        from secure_kg.learning.device import CPU, pick_device
        from secure_kg.trained import loading
        from secure_kg.trained.client_model import ClientModel

        place = CPU if device == "cpu" else pick_device(0, device)  # threads of a caller are its own
        if self.fusion is not None:
            graph = loading.own_graph(Path(self.fusion.federated.run), self.settings, number)
            return ClientModel(number, graph, loading.load_fused(self.fusion, number, graph, place))
        graph = loading.own_graph(self.path, self.settings, number)
        scorer = loading.load_scorer(self.path, self.settings, number, graph, place)
        return ClientModel(number, graph, scorer, loading.recorded_result(self.path, number))

    def result(self) -> "RunResult":
        """What the run has come to: figures, curve, bytes, who learned what, and a picture of them."""
        from secure_kg.trained.result import RunResult

        return RunResult(self)

    def audit(self, *, attacks: bool = True) -> "AuditOutcome":
        """What the server of this run really observed: the checks and attacks of `launch.audit`.

        The run must have been recorded (`--transcript`, `transcript=True`). `attacks`: try them too, scored against
        what the clients' folders here hold.
        """
        if self.fusion is not None:
            raise UserError(f"{self.path}: a fusion had no server; audit the run that it names")
        from secure_kg.audit.view.read import open_run
        from secure_kg.trained.auditing import AuditSettings, audit_run

        clients = self.path / "clients"
        folders = clients if clients.is_dir() else None
        return audit_run(open_run(self.path), AuditSettings(truth=folders if attacks else None, receipts=folders))

    def ask(self, question: str, *, client: int = 1, top: int = 10, hide_query: bool = False) -> "Answers":
        """A question over the graphs of all clients, asked by one of them; every party is a thread of this process.

        For runs that were trained on queries (`strategy="fedcqa"`). `question`: in the toolkit's own language, such as
        `?x : treats(?x, "disease_or_syndrome")`. `hide_query`: the others do not see what they score.
        """
        from secure_kg.trained.asking import ask

        return ask(self.path, question, client=client, top=top, hide_query=hide_query)

    def _whose(self) -> str:
        return named_clients(self.clients) if self.clients else "no client"

    def __repr__(self) -> str:
        kind = "fusion of" if self.fusion is not None else "run of"
        return f"TrainedRun({kind} {self.settings.strategy}, {self.settings.model}, models of {self._whose()})"


def load_run(path: str | Path, client_data: str | None = None) -> TrainedRun:
    """The run in this folder: of any strategy, or a folder that `launch.fuse` has written.

    `client_data`: where the client's own data are now, if not where they were. `UserError` says in one line what the
    folder lacks. Models are read by `TrainedRun.client`.
    """
    folder = Path(path)
    if (folder / _FUSION).is_file():
        record = read_record(folder / _FUSION, FusionRecord)
        run = Path(record.federated.run)
        if not (run / "config.toml").is_file():
            raise UserError(f"{folder / _FUSION}: names {run}, which is no run folder from here")
        return TrainedRun(folder, _finished(run, client_data), None, record)
    return TrainedRun(folder, _finished(folder, client_data), RunFolder(folder).summary())


def _finished(path: Path, client_data: str | None) -> RunConfig:
    config = read_config(path)
    if config.clients is None:
        raise UserError(f"{path}: its config.toml does not say how many clients there are")
    return config if client_data is None else replace(config, client_data=str(client_data))
