"""A tiny parent for every rank, so that the death of one rank is not the death of all.

MPICH's process manager kills a whole job when one of the processes it started dies by a signal. So the process it
starts does nothing but wait: it forks at once, before anything heavy is imported; the child is the worker that runs the
job, and the parent becomes this file, without the rank's environment, so that whoever looks for a rank's process finds
its worker. What the parent does when the worker ends:

    the worker finished MPI                        exit with its code
    it ended while all were finishing MPI          end the job, with the code that all had agreed on: everything is done
                                                   and said, and the others would wait for this rank without end
    a client died or left after MPI was up         wait: the process manager hears nothing and the others go on, until
                                                   the server ends the job with MPI_Abort
    it ended before MPI was up, in good order      exit with its code (a mistake on the command line, say)
    the server died by a signal after MPI was up   say so in one line, and end the job
    it died before MPI was up                      die by a signal, so that the job ends at once: the other ranks would
                                                   wait for it without end

Misuse: this file must run by its path in a bare interpreter; it imports the standard library only.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_INITIALISED, _FINISHING, _FINISHED = b"I", b"f", b"F"
_SECONDS_FOR_LAST_LINES = 0.25  # the process manager drops what it has not read from a process that is gone
_SECONDS_TO_FINISH = 15.0
_SECONDS_TO_BE_ENDED = 10.0

_status_pipe: int | None = None


def stand_by(rank: int) -> None:
    """Called by a process that mpirun started. Returns in the worker; the caller's process becomes its supervisor."""
    global _status_pipe
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # the process manager's way of telling survivors of a death
    read_end, write_end = os.pipe()
    worker = os.fork()
    if worker:
        os.close(write_end)
        os.set_inheritable(read_end, True)
        manager = os.environ.get("PMI_FD", "-1")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "MPI", "HYD"))}
        own_file = os.path.abspath(__file__)
        arguments = [own_file, str(worker), str(read_end), str(rank), manager]
        os.execve(sys.executable, [sys.executable, "-I", "-S", *arguments], kept)
    os.close(read_end)
    _status_pipe = write_end
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends the job; it is no exception to be reported
    die_with_parent()  # a supervisor that is killed takes its worker along


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it is gone (Linux; elsewhere nothing happens)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def report_initialised() -> None:
    """MPI is up: from now on this rank's death need not end the job."""
    _report(_INITIALISED)


def report_finishing(code: int) -> None:
    """Everybody is about to finalise MPI, and the job is to end with `code`, of one digit.

    From now on this process has only so long to live: finalising waits for the others inside of MPI, where nothing but
    the kernel can end it.
    """
    _report(_FINISHING + str(code).encode())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS_TO_FINISH)


def report_finished() -> None:
    """MPI was finalised together with everybody else."""
    _report(_FINISHED)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _report(status: bytes) -> None:
    if _status_pipe is not None:
        os.write(_status_pipe, status)


def supervise(worker: int, status_pipe: int, rank: int, manager: int) -> int:
    """Wait for the worker and give back the exit code, unless there is reason to wait on or to die.

    `manager`: the connection to the process manager, or -1.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _, ended = os.waitpid(worker, 0)
    reports = b""
    while chunk := os.read(status_pipe, 16):
        reports += chunk
    code = os.waitstatus_to_exitcode(ended)
    if _FINISHED in reports or (_INITIALISED not in reports and code >= 0):
        return max(code, 0)
    if _FINISHING in reports:
        agreed = int(reports.partition(_FINISHING)[2][:1])
        _end_job(manager, agreed)
        return agreed
    if rank == 0 and _INITIALISED in reports and code < 0:
        sys.stderr.write(f"error: the server's process was ended from outside (signal {-code})\n")
        _end_job(manager, 128 - code)
    if rank == 0 or _INITIALISED not in reports:
        _die_by_signal()
    while True:
        signal.pause()


def _end_job(manager: int, code: int) -> None:
    """As MPI_Abort does it: one line to the process manager (PMI-1, as MPICH's Hydra speaks it).

    Returns if that is in vain: the manager has hung up because this rank had taken its leave in good order, or it is
    another one. Then this process's end must do.
    """
    time.sleep(_SECONDS_FOR_LAST_LINES)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        os.write(manager, f"cmd=abort exitcode={code}\n".encode())
    except OSError:
        return
    time.sleep(_SECONDS_TO_BE_ENDED)


def _die_by_signal() -> None:
    if os.fork() == 0:  # keeps the output open until the process manager has read it
        time.sleep(_SECONDS_FOR_LAST_LINES)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(supervise(*(int(argument) for argument in sys.argv[1:5])))
