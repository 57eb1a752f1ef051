"""A task as its item in the table stores it: the names of the fields are the format of the item.

    working  ->  input_required  ->  working  ->  completed, failed or cancelled

While a task works, a worker (a Lambda invocation) has it for the time of a lease, or has been invoked and must soon
take it. A question ends the round and the worker's lease.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKING = "working"
INPUT_REQUIRED = "input_required"
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED})


@dataclass(frozen=True)
class Task:
    """The state of a task. All times are unix milliseconds.

    A question has two keys. The handler gave the elicit key to `elicit`. The client sees the wire key, which may never
    occur twice in a task: a question that is asked again has "seat" first, and "seat-2" then.
    """

    tool: str  # the name of the called tool
    arguments: Mapping[str, Any]  # the arguments of the call; deleted when the task ends
    principal: tuple[str, ...] | None  # issuer, subject and client of the caller; None on a server without sign-in
    scopes: tuple[str, ...]  # the scopes of the call's access token
    declared: Mapping[str, Any]  # the client's capabilities in the call
    flow: str  # the id of the conversation, which the log has on the line of each round
    created: int  # when the call became a task
    ttl: int  # milliseconds after `created` for which the task is kept
    updated: int  # when the status last changed
    status: str = WORKING  # one of the specification's five
    message: str = ""  # `statusMessage`; may be empty
    rounds: int = 0  # the number of completed rounds
    record: Mapping[str, Any] = field(default_factory=dict)  # answers and steps so far, from `round_record`
    # The open questions: wire key -> [elicit key, request].
    requests: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)  # questions of the last round: elicit key -> fingerprint
    given: Mapping[str, Any] = field(default_factory=dict)  # answers to these questions: elicit key -> response
    used: tuple[str, ...] = ()  # all wire keys that the task has ever had
    epoch: int = 0  # the number of workers that have taken the task; a write of an earlier worker fails
    held: bool = False  # True while a worker has a lease of the task
    until: int = 0  # when the worker's lease ends, or until when an invoked worker may take the task
    summons: int = 0  # the number of invocations in a row without a worker that took the task
    attempts: int = 0  # the number of workers in a row that took the task without progress
    cancel: bool = False  # True once the client has requested cancellation
    outcome: Mapping[str, Any] = field(default_factory=dict)  # how the task ended: {"result": …} or {"error": …}

    @property
    def ended(self) -> bool:
        """Whether the status is terminal."""
        return self.status in TERMINAL

    @property
    def expires(self) -> int:
        """When the task is deleted, in unix seconds."""
        return math.ceil((self.created + self.ttl) / 1000)


def from_json(payload: Mapping[str, Any]) -> Task:
    """Return the task in an item's payload; members that another release wrote are ignored."""
    names = {one.name for one in fields(Task)}
    members = {name: value for name, value in payload.items() if name in names}
    for name in ("principal", "scopes", "used"):  # tuples are lists in JSON
        members[name] = tuple(members[name]) if members.get(name) is not None else None
    return Task(**members)
