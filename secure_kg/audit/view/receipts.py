"""The clients' receipts as an auditor has them: all that lie in a folder, sorted into sound ones and others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from protocols.foundation.errors import DecodeError, PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.session.receipts import KeptReceipt, read_receipt
from secure_kg.audit.view.findings import Evidence
from secure_kg.audit.view.read import AuditedRun
from secure_kg.runs.recording import RECEIPTS, receipt_path


@dataclass(slots=True)
class Receipts:
    """Of all clients and sessions. Only `sound` ones are evidence of anything."""

    sound: list[KeptReceipt] = field(default_factory=list)
    marks: int = 0
    """How many marks the sound ones have."""
    damaged: Evidence = field(default_factory=Evidence)
    forged: Evidence = field(default_factory=Evidence)
    """Without the signature of the client's pinned identity, where every client has one."""
    empty: Evidence = field(default_factory=Evidence)
    unverified: Evidence = field(default_factory=Evidence)
    """Signed, by a client whose identity the auditor does not have."""


def load_receipts(run: AuditedRun, folder: Path, directory: Mapping[PartyId, bytes] | None) -> Receipts:
    """Everything under `folder`/K. `directory`: the clients' pinned identities, if the auditor has them."""
    found = Receipts()
    for path in sorted(folder.glob(f"*/{RECEIPTS}")):
        where = f"{path.parent.name}/{path.name}"
        try:
            receipt = read_receipt(path)
            if receipt is not None:
                _check_place(receipt, path, run.clients)
                if run.config.adversary == "active" and directory is not None:
                    receipt.check_signatures(directory)
        except DecodeError as problem:
            found.damaged.add(f"{where}: {problem}")
            continue
        except PeerMisbehaved as problem:
            found.forged.add(f"{where}: {problem}")
            continue
        if receipt is None or not receipt.marks:
            found.empty.add(f"{where}: cut before its first mark")
            continue
        found.sound.append(receipt)
        found.marks += len(receipt.marks)
        if run.config.adversary == "active" and directory is None:
            found.unverified.add(where)
    return found


def _check_place(receipt: KeptReceipt, path: Path, clients: int) -> None:
    """A receipt that lies elsewhere would be compared with the messages of another client."""
    client = receipt.head.client
    if not 1 <= client <= clients:
        raise DecodeError(f"of client {client}, and the run has clients 1 to {clients}")
    if path != receipt_path(path.parent, receipt.head.session) or path.parent.name != str(client):
        raise DecodeError(f"a receipt of client {client} in session {receipt.head.session.hex()[:8]}, so not in place")
