"""A task as its item stores it.

The item's format depends on the names of the fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKING, INPUT_REQUIRED = "working", "input_required"
COMPLETED, FAILED, CANCELLED = "completed", "failed", "cancelled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED})


@dataclass(frozen=True)
class Task:
    """The state of a task. All times are unix milliseconds.

    Attributes:
        tool: name of the called tool.
        arguments: of the call; deleted when the task ends.
        principal: issuer, subject and client of the caller; None on a server without sign-in.
        scopes: of the call's access token.
        declared: the client's capabilities in the call.
        flow: the conversation's name, from its first round on.
        created: when the call became a task.
        ttl: milliseconds after `created` for which the task is kept.
        updated: when the status last changed.
        status: one of the specification's five.
        message: `statusMessage`; may be empty.
        rounds: number of completed rounds.
        record: of the completed rounds, in the format of the rounds engine.
        requests: open questions: wire key -> [the engine's key, the request].
        asked: questions of the last round: the engine's key -> fingerprint.
        given: answers to these questions: the engine's key -> response.
        used: all wire keys that the task has ever had.
        epoch: number of workers that have taken the task; a write of an earlier worker fails.
        held: whether a worker has the task; otherwise a worker has been invoked.
        until: end of the worker's lease, or of the time to wait for an invoked worker.
        summons: number of invocations in a row without a worker that took the task.
        attempts: number of workers in a row that took the task without progress.
        cancel: whether the client has requested cancellation.
        outcome: of an ended task: {"result": …} or {"error": …}.
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
        """Whether the status is terminal."""
        return self.status in TERMINAL

    @property
    def expires(self) -> int:
        """Unix seconds at which the task is deleted."""
        return -(-(self.created + self.ttl) // 1000)

    def needs_worker(self, now: int) -> bool:
        """Whether the task is working, and no worker has it."""
        return self.status == WORKING and self.until <= now


def from_json(payload: Mapping[str, Any]) -> Task:
    """Return the task in `payload`; members of other versions are ignored."""
    names = {one.name for one in fields(Task)}
    members = {name: value for name, value in payload.items() if name in names}
    for name in ("principal", "scopes", "used"):
        members[name] = tuple(members[name]) if members.get(name) is not None else None
    return Task(**members)
