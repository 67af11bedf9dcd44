"""Questions under mpirun: rank 0 serves, every other rank is the client of its number, and one of these asks.

A rank reads its own folder of the run and no other's. The asker's rank alone shows anything of the answers, and says
what went wrong: whoever cannot go on tells the server, which tells everybody. The server's rank notes dropouts, and
speaks of a problem only where there is no asker to do so.

At the end the asker says its exit code to the server. If everybody is there, the session came to its end and no step
was abandoned, all ranks finalize MPI together; otherwise the server ends the job with `MPI_Abort` and that code, as in
training jobs (`launch.hosts.mpi`), while the others wait for it.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from launch.hosts import mpi_process
from launch.hosts.mpi_process import World
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import EncodingOverflow, ProtocolError
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, SessionId, new_session
from protocols.session.conversation import Conversation
from secure_kg.foundation.console import fail
from secure_kg.foundation.errors import DataError, InternalError, UserError
from secure_kg.foundation.words import counted
from secure_kg.queries.language.reading import Question
from secure_kg.queries.retrieval.over_run import STEP_SECONDS, AskSettings, RunAsked
from secure_kg.queries.retrieval.serving import Served, serve
from secure_kg.queries.retrieval.telling import telling
from secure_kg.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from secure_kg.queries.retrieval.members import AskersView
    from secure_kg.queries.retrieval.parts import Outcome, Session

_WORD_TAG: Final = 2  # messages of the session have another
_SEND_SECONDS: Final = 600.0
_SECONDS_TO_LEAVE: Final = 10.0
_SECONDS_FOR_A_WORD: Final = 60.0
"""That the asker may take to show its answers, or to notice that there are none."""
_SECONDS_OF_SILENCE: Final = 15.0
"""After which the asker says that it waits: longer than any step takes in which nobody is missing."""
_SILENT: Final = (
    "waiting: nothing has come from the server for a while; it waits for a client, or is stopped itself (a step ends "
    f"after {STEP_SECONDS:.0f} s)"
)


@dataclass(frozen=True, slots=True)
class Asking:
    """What the command line asks for."""

    run: Path
    settings: AskSettings
    questions: Callable[[], Sequence[Question]]
    """Read by the asker alone."""
    each: "Callable[[AskersView, Question, Outcome], None]"
    """Shows what has come of one question, at once."""
    show: "Callable[[AskersView, Session, Sequence[Question]], int]"
    """Shows the rest at the end; the exit code."""
    note: Callable[[str], None]
    """Told of dropouts, a line each."""


def run_rank(asking: Asking) -> int:
    """This rank's part; called in every process that mpirun started. Returns its exit code."""
    number = np.frombuffer(new_session(), dtype=np.uint8).copy()
    world = mpi_process.started(lambda everybody: everybody.Bcast(number, root=SERVER))
    from protocols.transport.mpi import MpiTransport

    with MpiTransport(world, _SEND_SECONDS) as transport:
        if transport.party == asking.settings.client:
            transport.on_silence(_SECONDS_OF_SILENCE, lambda: asking.note(_SILENT))
        conversation = Conversation(transport, SessionId(number.tobytes()))
        if world.Get_rank() == SERVER:
            return _serve_and_end(asking, conversation, world)
        code = _take_part(asking, conversation, world.Get_size())
        transport.flush(Deadline.after(_SECONDS_TO_LEAVE))
    if world.Get_rank() == asking.settings.client:
        word = np.array([code], dtype=np.uint8)
        _over(world.Isend(word, dest=SERVER, tag=_WORD_TAG))
    mpi_process.finalize(code)
    gc.freeze()  # or the interpreter would search all of torch for garbage at its end
    return code


def _opened(asking: Asking, ranks: int) -> RunAsked:
    run = RunAsked(asking.run, asking.settings)
    if ranks != len(run.clients) + 1:
        needed = f"so its questions need mpirun -n {len(run.clients) + 1}, a server and its clients"
        there = counted(len(run.clients), "client")
        raise UserError(f"{asking.run}: the run has {there}, {needed}, not {counted(ranks, 'rank')}")
    return run


def _serve_and_end(asking: Asking, conversation: Conversation, world: World) -> int:
    clients = frozenset(conversation.transport.peers)
    try:
        served = serve(_opened(asking, world.Get_size()).serving(asking.note), conversation)
    except (UserError, OSError) as problem:
        conversation.abort(clients, str(problem), SETUP)
        served = Served(clients, str(problem))
    except Exception as problem:
        fault = InternalError.recorded(problem, RunFolder(asking.run).server / "error.log")
        conversation.abort(clients, str(fault), SETUP)
        served = Served(clients, str(fault))
    conversation.transport.flush(Deadline.after(_SECONDS_TO_LEAVE if served.present == clients else 0.0))
    asker = PartyId(asking.settings.client)
    code = _word_of(asker, world) if asker in served.present else None
    if code is None:
        fail(served.problem or f"client {asker}, which asks, dropped out")
        code = 2
    if clients and (served.problem or served.abandoned or served.present != clients):
        mpi_process.end_all(code)  # MPI does not finalize in good order where messages were left unread
    mpi_process.finalize(code)
    return code


def _word_of(asker: PartyId, world: World) -> int | None:
    """The asker's exit code; None if it does not come to its end."""
    word = np.zeros(1, dtype=np.uint8)
    return int(word[0]) if _over(world.Irecv(word, source=asker, tag=_WORD_TAG)) else None


def _over(request: Any) -> bool:
    """Whether MPI's `request` is over in time; its own way of waiting would take the cores from the others."""
    from protocols.transport.mpi import Backoff

    backoff, limit = Backoff(), Deadline.after(_SECONDS_FOR_A_WORD)
    while not request.Test():
        if limit.expired:
            return False
        backoff.sleep(limit.remaining())
    return True


def _take_part(asking: Asking, conversation: Conversation, ranks: int) -> int:
    """A client's part; its exit code. The asker says what went wrong; of another's own work only that one knows it."""
    me = conversation.transport.party
    asks = me == asking.settings.client
    try:
        with telling(conversation, before=True):
            run = _opened(asking, ranks)
            questions = asking.questions() if asks else ()
        return _with_model(asking, run, conversation, questions)
    except (UserError, ProtocolError) as problem:
        reason = str(problem)
    except Exception as problem:
        reason = str(InternalError.recorded(problem, RunFolder(asking.run).client(int(me)) / "error.log"))
        if not asks:
            fail(f"client {me}: {reason}")
    if asks:
        fail(reason)
    return 2 if asks else 0


def _with_model(asking: Asking, run: RunAsked, conversation: Conversation, questions: Sequence[Question]) -> int:
    # Only clients need a model: the server's process never imports torch.
    from secure_kg.queries.retrieval import parts
    from secure_kg.queries.retrieval.members import AskersView, load_member, terms_of

    me = conversation.transport.party
    try:
        with telling(conversation, before=True):
            member = load_member(run, me)
    except DataError as problem:
        if me != run.asker:
            fail(f"client {me}: {problem}")  # nobody else was told
        raise
    public = terms_of(run, member)
    if me != run.asker:
        try:
            parts.answer(public, member, conversation, parts.Session())
        except (UserError, EncodingOverflow) as problem:
            fail(f"client {me}: {problem}")  # nobody else was told
            raise
        return 0
    view = AskersView.of(run, {me: member})
    session = parts.Session(on_outcome=lambda one: asking.each(view, questions[len(session.outcomes) - 1], one))
    try:
        parts.ask(public, member, conversation, [question.query for question in questions], session)
    except (UserError, ProtocolError) as problem:
        if not session.setup_seconds:
            raise  # there was no session to show anything of
        session.problems[me] = problem
    return asking.show(view, session, questions)
