"""An asyncio loop in a thread of its own, whose end is bounded."""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
_END_SECONDS: Final = 5.0
_LOGGER: Final = logging.getLogger("asyncio")
"""Silent: it warns of every broken connection, and what has no handler is written to standard error."""
_LOGGER.propagate = False
_LOGGER.addHandler(logging.NullHandler())


class LoopThread:
    """Starts with the object. What goes wrong in callbacks is counted and not written: peers could fill logs."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._note)
        # Name look-ups block. Their threads are not waited for.
        self._lookups = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix=f"{name}: names")
        self._loop.set_default_executor(self._lookups)
        self.troubles = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """What a coroutine returns or raises; `TimeoutError` after so many seconds."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Let a coroutine run, and do not wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, call: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call)

    def stop(self) -> None:
        """Cancel all tasks and end the thread, within seconds. Idempotent."""
        if not self._thread.is_alive():
            return
        self.soon(self._loop.stop)
        self._thread.join(2 * _END_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
        finally:
            self._lookups.shutdown(wait=False, cancel_futures=True)
            self._loop.close()

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.troubles += 1
