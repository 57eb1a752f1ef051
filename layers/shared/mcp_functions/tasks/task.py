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
    """The state of a task. All times are unix milliseconds."""

    tool: str  # name of the called tool
    arguments: Mapping[str, Any]  # of the call; deleted when the task ends
    principal: tuple[str, ...] | None  # issuer, subject and client of the caller; None on a server without sign-in
    scopes: tuple[str, ...]  # of the call's access token
    declared: Mapping[str, Any]  # the client's capabilities in the call
    flow: str  # the conversation's name, from its first round on
    created: int  # when the call became a task
    ttl: int  # milliseconds after `created` for which the task is kept
    updated: int  # when the status last changed
    status: str = WORKING  # one of the specification's five
    message: str = ""  # `statusMessage`; may be empty
    rounds: int = 0  # number of completed rounds
    # of the completed rounds, in the format of the rounds engine
    record: Mapping[str, Any] = field(default_factory=dict)
    # open questions: wire key -> [the engine's key, the request]
    requests: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    # questions of the last round: the engine's key -> fingerprint
    asked: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)  # answers to these questions: the engine's key -> response
    used: tuple[str, ...] = ()  # all wire keys that the task has ever had
    epoch: int = 0  # number of workers that have taken the task; a write of an earlier worker fails
    held: bool = False  # whether a worker has the task; otherwise a worker has been invoked
    until: int = 0  # end of the worker's lease, or of the time to wait for an invoked worker
    summons: int = 0  # number of invocations in a row without a worker that took the task
    attempts: int = 0  # number of workers in a row that took the task without progress
    cancel: bool = False  # whether the client has requested cancellation
    outcome: Mapping[str, Any] = field(default_factory=dict)  # of an ended task: {"result": …} or {"error": …}

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
