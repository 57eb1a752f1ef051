"""The steps of one round that run now, in the tasks or threads of a handler.

A step is a function that runs once in a conversation (`steps`). A round must not end while one of its steps runs: the
next round would run that step again.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Coroutine
    from typing import Any

    from mcp_functions.rounds.step_call import StepCall

current_call: ContextVar[StepCall | None] = ContextVar("current_call", default=None)


class RunningSteps:
    """The steps that run in one round, and the number of those that it has recorded.

    Attributes:
        keys: the keys of the running steps.
        recorded: the number of steps that ran in this round.
        handler_returned: True once an async handler has returned, so that its tasks start no more steps.
        tasks: one task for each step that an async handler waits for.
    """

    def __init__(self) -> None:
        """Count from zero: no step of this round has begun."""
        self.keys: set[str] = set()
        self.recorded = 0
        self.handler_returned = False
        self.tasks: set[Task[None]] = set()

    @property
    def current_key(self) -> str | None:
        """The key of the step that is running now; None outside of steps."""
        call = current_call.get()
        # A task or thread that a step started keeps its context variables after the step has ended.
        if call is None or call.round.steps is not self or call.step_key not in self.keys:
            return None
        return call.step_key

    def start(self, step: Coroutine[Any, Any, None]) -> Task[None]:
        """Start a step in a task, which `wait` waits for; after the handler has returned, the task does not begin."""
        import asyncio  # noqa: PLC0415 - its caller runs in it

        task = asyncio.ensure_future(step)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if self.handler_returned:
            task.cancel()
        return task

    async def wait(self) -> None:
        """Wait for the steps that the tasks of an async handler have started, so that the record has them."""
        import asyncio  # noqa: PLC0415 - its caller runs in it

        self.handler_returned = True
        while self.tasks:
            await asyncio.wait(self.tasks)
