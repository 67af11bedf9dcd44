"""Options and manners that `serve` and `join` share: their status page, and how they end."""

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from launch.status.board import StatusBoard
from launch.status.server import StatusServer
from protocols.foundation.errors import ProtocolError
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import InternalError, StorageError, UserError

_SECONDS_AT_THE_END: Final = 120.0


class Stopped(BaseException):
    """Somebody has ended this process in good order."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


def add_status_options(parser: argparse.ArgumentParser) -> None:
    """The status page's."""
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--status-port", type=int, default=0, metavar="PORT",
                      help="port of the status page, on this machine's loopback alone [any free one]")  # fmt: skip
    page.add_argument("--no-status", action="store_true", help="no status page")


@contextmanager
def status_page(board: StatusBoard, options: argparse.Namespace) -> Iterator[None]:
    """The page for as long as the command works, and at its end while somebody still looks."""
    with StatusServer(board, None if options.no_status else options.status_port) as page:
        if page.url is not None:
            say(f"status page, on this machine alone: {page.url}")
        try:
            yield
        except (UserError, ProtocolError, InternalError) as problem:
            board.failed(str(problem))
            raise
        with suppress(Stopped):  # the work is done
            page.linger(_SECONDS_AT_THE_END)


def run_until_stopped(command: Callable[[], int], again: str) -> int:
    """The exit code of `command`. `again`: what goes on after Ctrl-C or a service manager's stop."""

    def stop(number: int, _frame: object) -> None:
        raise Stopped(number)

    heeded = [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}  # nohup means that a signal is to be ignored
    try:
        return command()
    except StorageError as problem:
        raise UserError(f"{problem}; make room, and {again}") from None
    except (ProtocolError, InternalError) as problem:
        raise UserError(str(problem)) from None
    except Stopped as stopped:
        fail(f"interrupted; {again}")
        return stopped.code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
