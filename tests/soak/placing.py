"""The placement of a soak process: its version, its clock's error, its wrapping key, and the time of its death.

The soak's functions import it, in processes of the real runtime. Before each effect they append a line to the journal,
because a file survives `kill -9`. The journal uses the true clock.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.soak.plan import Placement, placement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.gateway import LambdaFunction

NOWHERE = Placement(number=-1, version=0, skew=0.0, rotated=False)
# Headers: which request this is, where it kills whom, and how the functions break for it.
DELIVERY, KILL, BREAK = "x-soak-delivery", "x-soak-kill", "x-soak-break"
STAYS = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)")


def append(file: Path, **line: object) -> None:
    """Write one line; appending is atomic, so many processes may write to one file."""
    written = json.dumps(line, separators=(",", ":")) + "\n"
    with file.open("ab", buffering=0) as journal:
        journal.write(written.encode())


class Place:
    """One process of one function."""

    def __init__(self, folder: str, run: Path | None) -> None:
        self._folder, self._run = folder, run
        self._delivery, self._kill, self._breaks = "", "", ""
        self.placement = self._settle(run) if run else NOWHERE
        self.version = self.placement.version

    @property
    def _name(self) -> str:
        return f"{self._folder} {self.placement.number}"

    def clock(self) -> float:
        """Tell the time, as wrong as this process has it."""
        return time.time() + self.placement.skew

    def around(self, function: LambdaFunction) -> Callable[[Mapping[str, Any], Any], dict[str, Any]] | LambdaFunction:
        """Write down what is asked of a function, and kill its process where the request says so."""
        if self._run is None:
            return function

        def watched(event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context object
            headers = event.get("headers", {})
            self._delivery, self._kill, self._breaks = (headers.get(one, "") for one in (DELIVERY, KILL, BREAK))
            self._write("begin", request=context.aws_request_id)
            self._die_at("begin")
            response = self._broken(function, event, context)
            self._write("end", status=response.get("statusCode"))
            self._die_at("end")
            return response

        return watched

    def reserve(self, nonce: str) -> str:
        """Find a shelf, another one each time: who has heard of two has seen this run twice."""
        shelf = f"shelf {secrets.token_hex(4)}"
        self._act("reserve", nonce, result=shelf)
        return shelf

    def announce(self, nonce: str) -> None:
        """Send a note to a recipient."""
        self._act("announce", nonce)

    def charge(self, nonce: str, size: int, key: str) -> str:
        """Act as a payment API that identifies payments by their keys."""
        key = secrets.token_hex(16) if self._breaks == "keys" else key
        receipt = f"receipt {key[:12]} for {size}"
        self._act("charge", nonce, key=key, result=receipt)
        return receipt

    def _act(self, step: str, nonce: str, **more: object) -> None:
        self._write("step", step=step, nonce=nonce, **more)
        self._die_at("step")

    def _die_at(self, moment: str) -> None:
        if self._kill == f"{self._folder} {moment}":
            self._write("dies", at=moment)
            os.kill(os.getpid(), signal.SIGKILL)

    def _write(self, kind: str, **more: object) -> None:
        if self._run:
            who = {"folder": self._folder, "env": self._name, "d": self._delivery}
            append(self._run / "journal", t=time.time(), kind=kind, **who, **more)

    def _settle(self, run: Path) -> Placement:
        world = json.loads((run / "world").read_text(encoding="utf-8"))
        me = f"{os.getpid()} {secrets.token_hex(8)}"
        places = run / f"places-{self._folder}"
        append(places, me=me)
        lines = places.read_text(encoding="utf-8").splitlines()
        number = next(at for at, line in enumerate(lines) if json.loads(line)["me"] == me)
        found = placement(world["seed"], number, self._folder)
        if "MCP_KMS_KEYS" in os.environ:
            keys = world["keys"][::-1] if found.rotated else world["keys"]
            os.environ.update({"MCP_KMS_KEYS": ",".join(keys), "AWS_ENDPOINT_URL_KMS": world["kms"]})
        who = {"folder": self._folder, "env": f"{self._folder} {number}", "pid": os.getpid()}
        append(run / "journal", t=time.time(), kind="born", **who, **found._asdict())
        return found

    def _broken(self, function: LambdaFunction, event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401
        """Answer as the function does, or as its request wants it broken: the checker is tested with these."""
        if self._breaks == "principals" and self._folder != "mcp":
            event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] = "ann"
        if self._breaks == "orphans" and self._folder != "mcp":
            subprocess.Popen(STAYS, start_new_session=True)  # noqa: S603 - it leaves the group, so nobody finds it
        response = function(event, context)
        if self._breaks == "steps" and self._folder != "mcp":
            self._act("reserve", "again", result="another shelf")
        if self._breaks == "answers" and self._folder == "mcp":
            body = json.loads(response["body"])
            response = {**response, "body": json.dumps({**body, "id": "another's"})}
        return response


def placed(folder: str) -> Place:
    """Find out where this process is; nowhere, if it only describes what it offers."""
    run = os.environ.get("SOAK_RUN", "")
    return Place(folder, Path(run) if run else None)
