"""Measures: every item of a run once a round, the rounds shuffled, each answer checked before the first is timed.

An item is a case and a contender. Cold, it is a new process, from its spawn to its answer; warm, a batch of calls in a
process that stays. Nothing is dropped: medians and deciles are of all samples.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.benchmarks import dialects, services, sign_in
from tests.benchmarks.entrants import NOTHING
from tests.benchmarks.lab import ALONE, BEHIND, IMPORTS, Answered, Item, Lab, Process

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from tests.benchmarks.dialects import Event

BATCH_SECONDS = 0.02  # of calls in one sample of a warm item


class Sample(NamedTuple):
    """The cost of one item in one round: nanoseconds for each call, and memory in KB."""

    cpu: float
    wall: float
    memory: int = 0
    modules: int = 0


class Started(NamedTuple):
    """A contender that is ready: who is asked, whose function answers (the same, but for `/mcp`), and with what."""

    front: Process
    behind: Process
    event: Event


def conversation(item: Item, once: Callable[[Event], dict[str, Any]]) -> Event:
    """Hold the rounds before the timed one, and return its event; it has been answered, and rightly.

    Raises:
        WrongAnswer: one of the answers is wrong.

    """
    case, dialect = item.case, item.entrant.dialect
    method, params = ("tools/list", {}) if case.params is None else ("tools/call", dict(case.params))
    for _ in range(case.before):
        asked = dialects.result(once(dialects.request(dialect, method, params)))
        params = dialects.answered(params, asked)
    event = dialects.request(dialect, method, params)
    case.check(dialects.result(once(event)))
    return event


def cold(lab: Lab, items: Iterable[Item], rounds: int, chance: random.Random) -> dict[Item, list[Sample] | str]:
    """Measure cold items, all of them interleaved.

    Args:
        lab: around them.
        items: cold ones.
        rounds: samples of each.
        chance: shuffles each round.

    Returns:
        The samples of each item, one a round; or why it has none.

    """
    found: dict[Item, list[Sample] | str] = {}
    for item in items:
        try:
            sample_cold(lab, item)  # also warms the page cache
            found[item] = []
        except dialects.WrongAnswer as wrong:
            found[item] = str(wrong)
    return _interleaved(found, {item: partial(sample_cold, lab, item) for item in found}, rounds, chance)


def sample_cold(lab: Lab, item: Item, listening: Callable[[str, str], object] | None = None) -> Sample:
    """Take one sample of a cold item.

    Args:
        lab: around it.
        item: the case and the contender.
        listening: called for each process with its function and the interpreter's report on imports.

    """
    if item.case.function == sign_in.FUNCTION:
        return Sample(*sign_in.took(lab, item))
    parts: list[Answered] = []

    def answer(event: Event, function: str) -> dict[str, Any]:
        if item.case.runtime:
            parts.append(lab.cold_in_runtime(item, function, event))
        else:
            parts.append(lab.cold(item, function, event, IMPORTS if listening else ()))
        if listening:
            listening(function, parts[-1].said)
        return parts[-1].response or {}

    if item.entrant.module in ALONE:
        parts.append(lab.cold(item, "", None))
    elif item.entrant.title == NOTHING:
        answer({}, item.case.function)
    elif item.case.door:
        with services.invoke(
            BEHIND, lambda folder, event: json.dumps(answer(json.loads(event), folder)).encode()
        ) as url:
            lab.invoke_url = url
            conversation(item, lambda event: answer(event, "door"))
    else:
        conversation(item, lambda event: answer(event, item.case.function))
    last = parts[-1]
    return Sample(
        sum(part.cpu for part in parts),
        last.wall,
        max(part.memory for part in parts),
        max(part.modules for part in parts),
    )


def warm(lab: Lab, items: Iterable[Item], rounds: int, chance: random.Random) -> dict[Item, list[Sample] | str]:
    """Measure warm items that are compared with each other, all of them interleaved (see `cold`)."""
    found: dict[Item, list[Sample] | str] = {}
    measure: dict[Item, Callable[[], Sample]] = {}
    with ExitStack() as stack:
        for item in items:
            try:
                started = ready(lab, item, stack)
                measure[item], found[item] = partial(sample_warm, started, _batch(started)), []
            except dialects.WrongAnswer as wrong:
                found[item] = str(wrong)
        return _interleaved(found, measure, rounds, chance)


def ready(lab: Lab, item: Item, stack: ExitStack) -> Started:
    """Start a contender, and hold the conversation up to what is timed; `stack` ends its processes."""
    behind = front = _started(lab, item, item.case.function, stack)
    if item.case.door:
        lab.invoke_url = stack.enter_context(
            services.invoke(BEHIND, lambda _folder, event: json.dumps(behind.once(json.loads(event))).encode())
        )
        front = _started(lab, item, "door", stack)
    return Started(front, behind, conversation(item, front.once))


def sample_warm(started: Started, times: int) -> Sample:
    """Take one sample of a warm item: so many calls."""
    front, behind, event = started
    before = behind.cpu()
    wall, cpu = front.timed(event, times)
    beside = behind.cpu() - before if front is not behind else 0
    return Sample((cpu + beside) / times, wall / times)


def _batch(started: Started) -> int:
    """Say how many calls make a sample."""
    times = 1
    while (took := started.front.timed(started.event, times)[0]) < BATCH_SECONDS * 1e9 / 2:
        times *= 2
    return max(1, int(times * BATCH_SECONDS * 1e9 / took))


def _started(lab: Lab, item: Item, function: str, stack: ExitStack) -> Process:
    process = Process(lab, item, function)
    stack.callback(process.close)
    return process


def _interleaved(
    found: dict[Item, list[Sample] | str],
    measure: Mapping[Item, Callable[[], Sample]],
    rounds: int,
    chance: random.Random,
) -> dict[Item, list[Sample] | str]:
    for _ in range(rounds):
        order = [item for item, samples in found.items() if isinstance(samples, list)]
        chance.shuffle(order)
        for item in order:
            try:
                sample = measure[item]()
            except dialects.WrongAnswer as wrong:  # after right ones: it does not count at all
                found[item] = str(wrong)
                continue
            samples = found[item]
            assert isinstance(samples, list)
            samples.append(sample)
    return found
