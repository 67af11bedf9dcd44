"""Under `--transcript`: the server's record of what it saw, and the clients' receipts, by which it can be checked.

transcript-S.bin        in the run's folder, by the server: every frame it received and sent in session S
receipt-S.json          in each client's folder: the hashes of the frames it sent and received, in order
"""

from pathlib import Path
from typing import Any

from protocols.identifiers import SessionId
from protocols.transport.tap import Receipt, Seal, Tap
from secure_kg.federation.run_folder import write_json


def session_name(session: SessionId) -> str:
    """Short enough for a file name; sessions of one run do not share it by chance."""
    return session.hex()[:8]


def transcript_path(run: Path, session: SessionId) -> Path:
    return run / f"transcript-{session_name(session)}.bin"


def receipt_path(client_folder: Path, session: SessionId) -> Path:
    return client_folder / f"receipt-{session_name(session)}.json"


def start_transcript(run: Path, session: SessionId) -> Tap:
    return Tap(transcript_path(run, session))


def seal_record(tap: Tap, seal: Seal) -> dict[str, Any]:
    """For the summary: by this a transcript that was written anew is told from the one of the run."""
    return {"file": tap.path.name, "frames": seal.records, "last_link": seal.link.hex()}


def write_receipt(client_folder: Path, session: SessionId, receipt: Receipt, final: bool) -> None:
    """Written at every checkpoint, and at the end. `final`: nothing more will pass in this session."""
    hashes = {"sent": receipt.hashes["sent"], "received": receipt.hashes["received"]}
    write_json(receipt_path(client_folder, session), {"session": session.hex(), "final": final, **hashes})
