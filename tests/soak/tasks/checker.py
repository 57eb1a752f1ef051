"""The rules of a run of tasks: every task ends once, correctly or with an error, and no recorded step runs again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.soak.tasks.run import Heard, Seen

GIVEN_UP = "again and again"  # the honest failure: worker after worker died, and none came further
MAX_ATTEMPTS = 5


def check(seen: Seen) -> list[str]:
    """Say what must not be, by the names of tasks."""
    return list(_breaches(seen))


def _breaches(seen: Seen) -> Iterator[str]:
    by_nonce: dict[str, list[dict[str, Any]]] = {one.nonce: [] for one in seen.heard}
    for line in seen.journal:
        by_nonce[line["nonce"]].append(line)
    for heard in seen.heard:
        for what in (*heard.wrong, *_end(heard, by_nonce[heard.nonce], seen.killed), *_work(by_nonce[heard.nonce])):
            yield f"{what}: {heard.nonce}"


def _end(heard: Heard, lines: list[dict[str, Any]], killed: int) -> Iterator[str]:
    if not heard.ends:
        yield "a task without an end"
        return
    if any(end["status"] != heard.ends[0]["status"] or _text(end) != _text(heard.ends[0]) for end in heard.ends):
        yield "an end that changed"
    match heard.ends[0]["status"]:
        case "completed":
            if _text(heard.ends[0]) != _right(heard, lines):
                yield "a wrong result"
        case "cancelled":
            if not heard.cancelled:
                yield "cancelled by nobody"
        case "failed":
            died = sum(line["kind"] == "dies" for line in lines)
            if GIVEN_UP not in str(heard.ends[0]) or died + killed < MAX_ATTEMPTS:
                yield "a failure that is not honest"
        case _:
            yield "an end that is none"


def _work(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Find steps that ran again after a later step, because a worker continues only after it has recorded a step.

    A client without a response to its first request repeats it. Then there are two tasks, and one is never polled.
    """
    furthest: dict[str, int] = {}
    for line in lines:
        task = line.get("task", "")
        if line["kind"] == "part":
            if line["part"] < furthest.get(task, -1):
                yield "a recorded step was repeated"
            furthest[task] = max(furthest.get(task, -1), line["part"])
        elif line["kind"] == "charge":
            furthest[task] = 1 << 31
    if len({line["key"] for line in lines if line["kind"] == "charge"}) > 1:
        yield "one payment under two keys"


def _right(heard: Heard, lines: list[dict[str, Any]]) -> str:
    keys = [line["key"] for line in lines if line["kind"] == "charge"]
    return f"{heard.nonce}: {heard.parts} parts, receipt {keys[0][:12] if keys else ''} for {heard.size}"


def _text(end: dict[str, Any]) -> str:
    content = end.get("result", {}).get("content", [{"text": ""}])
    return str(content[0]["text"])


def figures(seen: Seen) -> list[tuple[str, str]]:
    """Return the figures of a run: the faults of the tasks and how they ended."""
    ends = Counter(one.ends[0]["status"] if one.ends else "none" for one in seen.heard)
    died = Counter(line["where"] for line in seen.journal if line["kind"] == "dies")
    parts = Counter((line["task"], line["part"]) for line in seen.journal if line["kind"] == "part")
    begun = {(line["nonce"], line["task"]) for line in seen.journal if line["kind"] == "part"}
    again = len(begun) - len({nonce for nonce, _task in begun})
    return [
        ("tasks", f"{len(seen.heard)}"),
        *((f"… that ended {status}", f"{ends[status]}") for status in sorted(ends)),
        ("begun a second time, by clients without a first response", f"{again}"),
        ("breaches", f"{len(check(seen))}"),
        ("seconds", f"{seen.seconds:.0f}"),
        ("polls", f"{sum(one.polls for one in seen.heard)}"),
        ("workers that ended or died (of the last 1000 invocations)", f"{seen.workers}"),
        *((f"workers killed from inside, {where} a step", f"{died[where]}") for where in sorted(died)),
        ("workers killed from outside", f"{seen.killed}"),
        ("steps done, and done again because they had no record yet", f"{len(parts)}, {parts.total() - len(parts)}"),
        *((f"calls of the table: {fault}", f"{seen.faults[fault]}") for fault in sorted(seen.faults)),
    ]
