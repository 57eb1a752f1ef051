"""A task that a worker holds: its lease is renewed while the work lasts, and whoever lost it writes nothing more."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import McpError, TemporarilyUnavailable, UnknownTask
from mcp_functions.tasks.task import Lost, Task, progressed, renewed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.rounds.round import AuditRecord, Round
    from mcp_functions.tasks.store import Store

log = logging.getLogger("mcp_functions")

PATIENCE = (0.1, 0.5, 2.0)  # seconds between tries to write, when the table does not answer


class Held:
    """A task and the worker that holds it: one thread works, another renews the lease, and they write in turn.

    Attributes:
        task_id: of the task.
        owner: digest of its principal.
        epoch: of this worker.
        tool: what was called.

    """

    def __init__(  # noqa: PLR0913 - who holds what, for how long
        self,
        store: Store,
        task_id: str,
        owner: str | None,
        task: Task,
        *,
        lease: int,
        now: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Hold a task that was just taken.

        Args:
            store: of the tasks.
            task_id: of the task.
            owner: digest of its principal.
            task: as it is now.
            lease: milliseconds for which it is held without a word.
            now: unix seconds.
            sleep: waits, for seconds.

        """
        self.task_id, self.owner, self.epoch, self.tool = task_id, owner, task.epoch, task.tool
        self._store, self._task, self._lease, self._now, self._sleep = store, task, lease, now, sleep
        self._round: Round | None = None
        self._lost, self._lock, self._done = False, Lock(), Event()

    def playing(self, round_: Round) -> None:
        """Have a round write down its steps, and ask before each whether it may go on."""
        self._round = round_
        round_.on_step_recorded, round_.must_stop = self._progressed, self.stopped

    def change(self, to: Callable[[Task], Task]) -> Task:
        """Write, as the only worker.

        Raises:
            Lost: it is not.

        """
        with self._lock:
            if self._lost:
                raise Lost
            try:
                self._task = self._write(to)
            except Lost:
                self._lost = True
                raise
            return self._task

    def stopped(self) -> bool:
        """Say whether nothing more may be done: another worker has the task, or the client wants it to end."""
        try:
            return self.change(self._renewed).cancel
        except Lost:
            return True

    def _renewed(self, task: Task) -> Task:
        """Look whether it is still ours; write only where the lease grows old, or there is something to say."""
        until, told = self._until(), self._told()
        fresh = until - task.until < self._lease // 2
        return renewed(task, self.epoch, task.until if fresh else until, told)

    def _progressed(self) -> None:
        """Write down what the round has left so far, or end it: nobody may act on what is not written down."""
        if not self._round:
            return
        record = left(self._round)
        try:
            self.change(lambda task: progressed(task, self.epoch, self._until(), record, self._told()))
        except Lost:
            self._round.end()

    def audit(self, tell: Callable[[AuditRecord], object], round_: Round, *, asks: bool) -> bool:
        """Tell the author's audit of a round, before anybody can see its questions; say whether it heard of them.

        Whether a question was seen whose write nobody confirmed, nobody can say: so it is told first. A worker that
        lost its task tells nothing, because another plays this round.
        """
        stopped = self.stopped()
        if self._lost:
            return False
        tell(round_.audit(self.tool, self.owner, sent=asks and not stopped))
        return asks and not stopped

    @contextmanager
    def beating(self, seconds: float) -> Iterator[None]:
        """Renew the lease every so many seconds, until the end of the block."""
        thread = Thread(target=self._beat, args=(seconds,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    def _beat(self, seconds: float) -> None:
        while not self._done.wait(seconds):
            try:
                self.stopped()
            except McpError as error:
                log.warning("a lease was not renewed: %s", error.reason)

    def _told(self) -> str:
        return self._round.progress_message if self._round and self._round.progress_message else self._task.message

    def _until(self) -> int:
        return int(self._now() * 1000) + self._lease

    def _write(self, to: Callable[[Task], Task]) -> Task:
        """Change the task, and try again for a while if the table does not answer."""
        for pause in PATIENCE:
            try:
                return self._change(to)
            except TemporarilyUnavailable:
                self._sleep(pause)
        return self._change(to)

    def _change(self, to: Callable[[Task], Task]) -> Task:
        try:
            return self._store.change(self.task_id, self.owner, to)
        except UnknownTask:
            raise Lost from None


def left(round_: Round) -> dict[str, Any]:
    """Say what a round leaves, but for how often the work was interrupted: of a task, nobody counts that."""
    return {name: value for name, value in round_.next_record().items() if name != "sheds"}
