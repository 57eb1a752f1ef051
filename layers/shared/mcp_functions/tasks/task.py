"""A task as its item holds it, and the only ways in which it changes: plain functions from one state to the next.

Whoever writes names the version it read, so of two writers one does it again, on what the other left: each of these
functions says anew what is to happen then, and changes nothing where nothing is. A worker's carry its epoch, and raise
`Lost` where another worker has taken over, or the task has ended: what ended stays as it is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.messages import Principal

WORKING, INPUT_REQUIRED = "working", "input_required"
COMPLETED, FAILED, CANCELLED = "completed", "failed", "cancelled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED})

LEASE_MS = 30_000  # for which a worker holds a task without a word; it says a word three times as often
SUMMONS_MS = 15_000  # for which a worker that was called may be on its way, the first time
LONGEST_SUMMONS_MS = 900_000
MAX_ATTEMPTS = 5  # workers that took the task in a row, and none of them came a step further
POLL_MS, LONGEST_POLL_MS = 1000, 30_000


class Lost(Exception):
    """The task is no longer this worker's: another has taken over, it has ended, or it is gone."""


@dataclass(frozen=True)
class Task:
    """What is known of a task.

    Attributes:
        tool: what was called.
        arguments: of the call; forgotten when the task ends.
        principal: who called: issuer, subject and client; None for nobody.
        scopes: that the token of the call granted.
        declared: the client's capabilities, of the call.
        flow: names the conversation, from its first round on.
        created: unix milliseconds, like every time here.
        ttl: milliseconds from then on for which it is kept.
        updated: when its status last changed.
        status: one of the specification's five.
        message: `statusMessage`; "" for none.
        rounds: that were played.
        record: what the rounds left, as the engine wrote it.
        requests: what the client has to answer: wire key -> [the engine's key, the request].
        asked: the questions of the last round: the engine's key -> fingerprint.
        given: the answers to them so far: the engine's key -> response.
        used: every wire key there ever was.
        epoch: counts the workers that took it: the fence that a worker's writes have to pass.
        held: whether a worker has it; if not, one was summoned.
        until: when that worker is given up: its lease, or the time it may be on its way.
        summons: in a row that no worker answered.
        attempts: workers in a row that took it and came no further.
        cancel: whether the client wants it to end.
        outcome: how it ended: {"result": …} or {"error": …}.

    """

    tool: str
    arguments: Mapping[str, Any]
    principal: tuple[str, ...] | None
    scopes: tuple[str, ...]
    declared: Mapping[str, Any]
    flow: str
    created: int
    ttl: int
    updated: int
    status: str = WORKING
    message: str = ""
    rounds: int = 0
    record: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    epoch: int = 0
    held: bool = False
    until: int = 0
    summons: int = 0
    attempts: int = 0
    cancel: bool = False
    outcome: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether its status is terminal."""
        return self.status in TERMINAL

    @property
    def expires(self) -> int:
        """Unix seconds at which nobody knows it any more."""
        return -(-(self.created + self.ttl) // 1000)

    def abandoned(self, now: int) -> bool:
        """Whether it has to go on, and nobody has it."""
        return self.status == WORKING and self.until <= now


def written(task: Task) -> dict[str, Any]:
    """Write it as JSON."""
    return asdict(task)


def read(payload: Mapping[str, Any]) -> Task:
    """Read what `written` wrote, also in a version that knew other fields."""
    known = {one.name for one in fields(Task)}
    found = {name: value for name, value in payload.items() if name in known}
    for name in ("principal", "scopes", "used"):
        found[name] = tuple(found[name]) if found.get(name) is not None else None
    return Task(**found)


def summoned(task: Task, now: int) -> Task:
    """Note that a worker was called; one that never came is called again, ever more patiently."""
    patience: int = min(SUMMONS_MS * 4**task.summons, LONGEST_SUMMONS_MS)
    return replace(task, held=False, until=now + patience, summons=task.summons + 1)


def taken(task: Task, now: int, lease: int) -> Task:
    """Let a worker have it.

    Raises:
        Lost: it has ended, waits for the client, or another worker has it.

    """
    if task.status != WORKING or (task.held and now < task.until):
        raise Lost
    if task.cancel:
        return cancelled(task, now)
    return replace(task, epoch=task.epoch + 1, held=True, until=now + lease, summons=0, attempts=task.attempts + 1)


def renewed(task: Task, epoch: int, until: int, message: str) -> Task:
    """Let a worker have it for longer, and say how far it is."""
    return replace(_mine(task, epoch), until=until, message=message)


def progressed(task: Task, epoch: int, until: int, record: Mapping[str, Any], message: str) -> Task:
    """Write down what the round has left so far: the answers that it was given stand in there too."""
    known = renewed(task, epoch, until, message)
    return replace(known, record=record, asked={}, given={}, attempts=0)


def paused(task: Task, epoch: int, now: int, record: Mapping[str, Any], message: str) -> Task:
    """End a round without a question: another worker goes on, if this one came further at all."""
    further = record != task.record
    known = progressed(task, epoch, now, record, message)
    again = replace(known, rounds=task.rounds + 1, held=False, summons=0, attempts=0 if further else task.attempts)
    return cancelled(again, now) if task.cancel else summoned(again, now)


def asking(  # noqa: PLR0913, PLR0917 - what a round leaves that asks
    task: Task, epoch: int, now: int, record: Mapping[str, Any], requests: Mapping[str, Any], asked: Mapping[str, str]
) -> Task:
    """End a round with questions, each under a wire key that this task never had."""
    known = progressed(task, epoch, now, record, "")
    if task.cancel:
        return cancelled(known, now)
    wire = dict(zip(_fresh_keys(requests, task.used), requests.items(), strict=True))
    return replace(
        known,
        status=INPUT_REQUIRED,
        updated=now,
        rounds=task.rounds + 1,
        held=False,
        requests=wire,
        asked=dict(asked),
        used=(*task.used, *wire),
    )


def finished(task: Task, epoch: int, now: int, status: str, outcome: Mapping[str, Any]) -> Task:
    """End it with a result or an error, for a worker."""
    message = str(outcome["error"]["message"]) if "error" in outcome else ""
    return _ended(replace(_mine(task, epoch), message=message), now, status, outcome)


def exhausted(task: Task, now: int, error: Mapping[str, Any]) -> Task:
    """End it because worker after worker died."""
    return _ended(replace(task, message=str(error["message"])), now, FAILED, {"error": error})


def cancelled(task: Task, now: int) -> Task:
    """End it because the client wants that, and no worker has it."""
    return _ended(task, now, CANCELLED, {})


def cancelling(task: Task, now: int) -> Task:
    """Do what a client asks that wants it to end: now, or at the next step or question of the worker that has it."""
    if task.ended:
        return task
    busy = task.status == WORKING and task.held and now < task.until
    return replace(task, cancel=True) if busy else cancelled(task, now)


def answered(task: Task, responses: Mapping[str, Any], now: int) -> Task:
    """Take answers. "Unknown, answered and superseded keys are ignored"; with the last one the work goes on."""
    taken_ = {key: responses[key] for key in task.requests if key in responses}
    if task.status != INPUT_REQUIRED or not taken_:
        return task
    open_ = {key: asked for key, asked in task.requests.items() if key not in taken_}
    given = {**task.given, **{task.requests[key][0]: response for key, response in taken_.items()}}
    known = replace(task, requests=open_, given=given)
    return known if open_ else summoned(replace(known, status=WORKING, updated=now, summons=0, attempts=0), now)


def _mine(task: Task, epoch: int) -> Task:
    if task.ended or task.epoch != epoch or not task.held:
        raise Lost
    return task


def _ended(task: Task, now: int, status: str, outcome: Mapping[str, Any]) -> Task:
    # What it was called with, and what was answered, is nobody's business any more.
    forgotten: dict[str, Any] = {"arguments": {}, "record": {}, "requests": {}, "asked": {}, "given": {}, "used": ()}
    return replace(task, status=status, updated=now, outcome=outcome, held=False, until=0, **forgotten)


def _fresh_keys(requests: Mapping[str, Any], used: tuple[str, ...]) -> list[str]:
    # "Keys MUST be unique over the lifetime of the task": a question asked again is another question
    known, fresh = set(used) | set(requests), list[str]()
    for key in requests:
        name, number = key, 1
        while name in known and (number > 1 or key in used):
            number += 1
            name = f"{key}-{number}"
        known.add(name)
        fresh.append(name)
    return fresh


def principal_of(principal: Principal | None) -> tuple[str, ...] | None:
    """Write a principal as the item holds it."""
    return None if principal is None else tuple(principal)
