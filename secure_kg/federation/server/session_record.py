"""Beginning a session: its name, and under `--transcript` the record of it in the run's folder."""

from protocols.foundation.identifiers import SessionId, new_session
from protocols.transport.base import Transport
from protocols.transport.tap import Tap
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.runs.recording import seal_record, settings_path, start_transcript
from secure_kg.runs.records.events import TranscriptEnd
from secure_kg.runs.run_folder import RunFolder, write_whole


class SessionRecord:
    """One session. Its name, and that of the run, are free for the server to choose."""

    def __init__(self, config: RunConfig, folder: RunFolder) -> None:
        self._config, self._folder = config, folder
        self._tap: Tap | None = None

    @property
    def run_name(self) -> str:
        """What clients are told that the run is called."""
        return self._folder.path.resolve().name

    def begin(self, transport: Transport) -> SessionId:
        """The name of the session. From now on what passes `transport` is recorded, if the run has a record."""
        session = new_session()
        if self._config.transcript:
            self._tap = start_transcript(self._folder.path, session)
            transport.attach(self._tap)
            # A run that is resumed may have other settings, such as more rounds: an audit needs those of each session.
            write_whole(settings_path(self._folder.path, session), self._config.to_toml().encode())
        return session

    def seal(self) -> TranscriptEnd | None:
        """End the record; None if there is none."""
        return seal_record(self._tap, self._tap.seal()) if self._tap is not None else None
