"""The two ways in which the tests of rounds run coroutines in asyncio tasks; both return the results in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    RunAll = Callable[..., Coroutine[Any, Any, list[Any]]]


async def gather(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.gather(*calls)


async def task_group(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]


both_task_runners = pytest.mark.parametrize("run_all", [gather, task_group])
