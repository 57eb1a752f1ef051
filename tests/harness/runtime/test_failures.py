"""Crashes, init errors, timeouts and function errors are distinct, as in Lambda's Invoke API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness

from .conftest import Stack, write_project

if TYPE_CHECKING:
    from collections.abc import Iterator

APPS = {
    "raises": "def handler(event, context):\n    raise LookupError('no such thing')\n",
    "returns_a_set": "def handler(event, context):\n    return {1, 2}\n",
    "returns_too_much": "def handler(event, context):\n    return 'a' * (6 * 1024 * 1024 + 99)\n",
    "returns_as_much_as_it_may": "def handler(event, context):\n    return 'a' * (6 * 1024 * 1024 + 98)\n",
    "exits": "import sys\ndef handler(event, context):\n    sys.exit(3)\n",
    "exits_well": "def handler(event, context):\n    raise SystemExit\n",
    "aborts": "import os\ndef handler(event, context):\n    os.abort()\n",
    "hangs": "import time\ndef handler(event, context):\n    time.sleep(60)\n",
    "eats": "def handler(event, context):\n    return len(bytearray(300 * 1024 * 1024))\n",
    "eats_and_hangs": "import time\ndef handler(event, context):\n    a = b'a' * (300 << 20)\n    time.sleep(60)\n",
    "lacks_a_module": "import nothing_of_this_name\n",
    "is_no_python": "def broken(:\n",
    "lacks_a_handler": "handle = 1\n",
    "raises_at_init": "raise ValueError('not today')\n",
    "exits_at_init": "import os\nos._exit(7)\n",
}
PLATFORM = {"errorType", "errorMessage"}
OWN = {"errorType", "errorMessage", "requestId", "stackTrace"}
ID = "RequestId: [0-9a-f-]{36} Error: "


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    root, lines = tmp_path_factory.mktemp("project"), list[tuple[str, str]]()
    quick = dict.fromkeys(["hangs"], "{Timeout: 1}")
    directory = write_project(root, APPS, quick, "Globals: {Function: {Timeout: 20, MemorySize: 128}}\n")
    with Harness(
        directory, state_dir=root / "s", runtime=True, on_log=lambda folder, line: lines.append((folder, line))
    ) as running:
        yield Stack(running, directory, lines)


@pytest.mark.parametrize(
    ("folder", "error", "message", "keys"),
    [
        ("raises", "LookupError", "no such thing", OWN),
        ("returns_a_set", "Runtime.MarshalError", "Unable to marshal response: .*", OWN),
        ("returns_too_much", "Function.ResponseSizeTooLarge", r".* payload size \(6291556 bytes\)\.", PLATFORM),
        ("exits", "Runtime.ExitError", f"{ID}Runtime exited with error: exit status 3", PLATFORM),
        ("exits_well", "Runtime.ExitError", f"{ID}Runtime exited without providing a reason", PLATFORM),
        ("aborts", "Runtime.ExitError", f"{ID}Runtime exited with error: signal: aborted", PLATFORM),
        ("hangs", "Sandbox.Timedout", rf"{ID}Task timed out after 1\.00 seconds", PLATFORM),
        ("eats", "Runtime.OutOfMemory", f"{ID}Runtime exited with error: signal: killed", PLATFORM),
        ("eats_and_hangs", "Runtime.OutOfMemory", f"{ID}Runtime exited with error: signal: killed", PLATFORM),
        ("lacks_a_module", "Runtime.ImportModuleError", "Unable to import module 'app': No module .*", OWN),
        ("is_no_python", "Runtime.UserCodeSyntaxError", "Syntax error in module 'app': .*", OWN),
        ("lacks_a_handler", "Runtime.HandlerNotFound", "Handler 'handler' missing on module 'app'", OWN),
        ("raises_at_init", "ValueError", "not today", OWN),
        ("exits_at_init", "Runtime.ExitError", f"{ID}Runtime exited with error: exit status 7", PLATFORM),
    ],
)
def test_a_failure_has_lambdas_status_header_and_payload(
    stack: Stack, folder: str, error: str, message: str, keys: set[str]
) -> None:
    answer = stack.invoke(folder)
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    assert answer["Payload"]["errorType"] == error
    assert re.fullmatch(message, answer["Payload"]["errorMessage"])
    assert answer["Payload"].keys() == keys
    assert stack.harness.invocations[-1].error == error
    assert stack.harness.invocations[-1].request_id == answer["ResponseMetadata"]["RequestId"]


@pytest.mark.parametrize("folder", ["exits", "hangs", "eats", "lacks_a_module"])
def test_the_report_line_names_the_reason_why_the_platform_ended_a_process(stack: Stack, folder: str) -> None:
    before = len(stack.log(folder))
    error = stack.invoke(folder)["Payload"]["errorType"]
    *_, end, report = stack.log(folder)[before:]
    status = "Status: timeout" if error == "Sandbox.Timedout" else f"Status: error\tError Type: {error}"
    assert end.startswith("END RequestId: ")
    assert report.endswith(f"\t{status}")


def test_a_response_of_the_largest_size_that_lambda_allows_is_sent(stack: Stack) -> None:
    assert len(stack.value("returns_as_much_as_it_may")) == 6 * 1024 * 1024 + 98


def test_a_failed_init_runs_once_more_during_the_invocation(stack: Stack) -> None:
    before = len(stack.log("exits_at_init"))
    stack.invoke("exits_at_init")
    told = [line.partition(" ")[0] for line in stack.log("exits_at_init")[before:]]
    assert told == ["INIT_REPORT", "START", "INIT_REPORT", "RequestId:", "END", "REPORT"]
    phases = [line.split("\t")[1] for line in stack.log("exits_at_init")[before:] if line.startswith("INIT_REPORT")]
    assert phases == ["Phase: init", "Phase: invoke"]
