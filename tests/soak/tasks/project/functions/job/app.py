"""A task of many steps that asks and then charges once; its workers die where the plan says, wherever they are."""

import json
import os
import random
import signal
import time
from pathlib import Path

from pydantic import BaseModel

from mcp_functions import Elicit, Progress, Step, serve, tool

JOURNAL = Path(os.environ.get("SOAK_RUN", ".")) / "journal"
KILLS = float(os.environ.get("SOAK_KILLS", "0"))
CHANCE = random.SystemRandom()


class Size(BaseModel):
    size: int


def note(**line: object) -> None:
    """Write a line before anything comes of it: a file outlives `kill -9`."""
    with JOURNAL.open("ab", buffering=0) as journal:
        journal.write(json.dumps({"t": time.time(), "pid": os.getpid(), **line}).encode() + b"\n")


def perhaps_die(where: str, nonce: str) -> None:
    if CHANCE.random() < KILLS:
        note(kind="dies", where=where, nonce=nonce)
        os.kill(os.getpid(), signal.SIGKILL)


def work(nonce: str, task: str, part: int) -> int:
    perhaps_die("before", nonce)
    note(kind="part", nonce=nonce, task=task, part=part)
    perhaps_die("after", nonce)  # done, and not written down
    time.sleep(CHANCE.random() / 50)
    return part


def charge(nonce: str, task: str, size: int, *, key: str) -> str:
    """Act as a payment API that identifies payments by their keys."""
    note(kind="charge", nonce=nonce, task=task, key=key)
    perhaps_die("after charge", nonce)
    return f"receipt {key[:12]} for {size}"


@tool(task="required", task_ttl=3600)
def job(nonce: str, parts: int, *, step: Step, elicit: Elicit, progress: Progress) -> str:
    """Work, ask, charge."""
    done, task = 0, str(step.uuid("task"))
    for part in range(parts):
        progress(part, total=parts)
        done += step(f"part-{part}", work, nonce, task, part) == part
        perhaps_die("between", nonce)
    size = elicit("size", f"{nonce}: which size?", Size).size
    return f"{nonce}: {done} parts, {step.keyed('charge', charge, nonce, task, size)}"


handler = serve(job)
