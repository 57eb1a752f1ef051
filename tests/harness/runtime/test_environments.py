"""One environment for each concurrent request: new when none is idle, used again, replaced when its code changed."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from mcp_functions_harness.runtime import fleet
from mcp_functions_harness.runtime import sandbox as environment

from .conftest import PID, process_exists, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Stack

    Deploy = Callable[..., Stack]

# Two of these return when both are running, each its own number and its pid.
MEETING_APP = """
import os, pathlib, time
def handler(event, context):
    here = pathlib.Path(event["where"])
    (here / str(event["who"])).write_text(str(os.getpid()))
    while len(list(here.iterdir())) < event["many"]:
        time.sleep(0.005)
    return os.getpid()
"""
# While it loads, it reports that, and whether another process loads at the same time.
LOADING_APP = """
import os, pathlib, time
here = pathlib.Path(__file__).parents[2] / "loading"
(here / str(os.getpid())).touch()
time.sleep(0.2)
if len(list(here.iterdir())) > 1:
    (here.parent / "two at once").touch()
(here / str(os.getpid())).unlink()
def handler(event, context):
    time.sleep(0.5)
"""
# Says who it is, and stays.
STAYING_APP = """
import os, pathlib, time
def handler(event, context):
    here = pathlib.Path(event)
    (here / "written").write_text(str(os.getpid()))
    (here / "written").rename(here / "pid")
    time.sleep(60)
"""


def test_the_harness_reuses_an_idle_environment(deploy: Deploy) -> None:
    stack = deploy({"tells": PID})
    assert stack.value("tells") == stack.value("tells")
    first, second = stack.harness.invocations
    assert first.pid == second.pid != os.getpid()
    assert first.init_milliseconds
    assert second.init_milliseconds is None


def test_an_option_gives_each_invocation_a_new_process(deploy: Deploy) -> None:
    stack = deploy({"tells": PID}, reuse=False)
    pids = [stack.value("tells") for _ in range(3)]
    assert len(set(pids)) == 3
    assert [invocation.pid for invocation in stack.harness.invocations] == pids
    assert all(invocation.init_milliseconds for invocation in stack.harness.invocations)
    for pid in pids:
        wait_until(lambda pid=pid: not process_exists(pid))  # type: ignore[misc]


def test_each_of_several_concurrent_requests_runs_in_its_own_process(deploy: Deploy, tmp_path: Path) -> None:
    stack, where = deploy({"meets": MEETING_APP}), tmp_path / "where"
    where.mkdir()
    answers = [stack.start("meets", {"where": str(where), "who": who, "many": 3}) for who in range(3)]
    pids = [answer.get()["Payload"] for answer in answers]
    assert len(set(pids)) == 3
    assert stack.value("meets", {"where": str(where), "who": 0, "many": 3}) in pids


def test_at_most_as_many_processes_start_at_once_as_there_are_processors(
    deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loading").mkdir()
    monkeypatch.setattr(fleet, "CONCURRENT_STARTS", 1)
    stack = deploy({"loads": LOADING_APP, "other": LOADING_APP}, reuse=False)
    calls = [stack.start(folder) for folder in ("loads", "other", "loads")]
    assert all("FunctionError" not in call.get() for call in calls)
    assert len({invocation.pid for invocation in stack.harness.invocations}) == 3
    assert not (tmp_path / "two at once").exists()


def test_requests_above_the_reserved_concurrency_are_throttled(deploy: Deploy, tmp_path: Path) -> None:
    stack = deploy({"stays": STAYING_APP}, {"stays": "{ReservedConcurrentExecutions: 1, Timeout: 20}"})
    running = stack.start("stays", str(tmp_path))
    wait_until((tmp_path / "pid").exists)
    with pytest.raises(ClientError) as error:
        stack.invoke("stays", str(tmp_path))
    assert error.value.response["Error"]["Code"] == "TooManyRequestsException"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    assert running.get()["FunctionError"] == "Unhandled"
    assert len(stack.harness.invocations) == 1  # a throttled call does not run


def test_a_request_above_the_local_limit_of_processes_waits_for_an_idle_process(
    deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CONCURRENCY", 1)
    stack = deploy({"stays": STAYING_APP, "tells": PID})
    running = stack.start("stays", str(tmp_path))
    wait_until((tmp_path / "pid").exists)
    waiting = stack.start("stays", str(tmp_path))
    assert stack.value("tells")  # it runs in another process
    first = int((tmp_path / "pid").read_text(encoding="utf-8"))
    (tmp_path / "pid").unlink()
    os.kill(first, signal.SIGKILL)
    running.get()
    wait_until((tmp_path / "pid").exists)
    second = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert second != first
    os.kill(second, signal.SIGKILL)
    waiting.get()


def test_a_request_that_waits_too_long_for_an_idle_process_is_throttled(
    deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CONCURRENCY", 1)
    monkeypatch.setattr(fleet, "WAIT_SECONDS", 0.1)
    stack = deploy({"stays": STAYING_APP})
    running = stack.start("stays", str(tmp_path))
    wait_until((tmp_path / "pid").exists)
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        stack.invoke("stays")
    os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    running.get()


def test_the_next_request_runs_after_a_process_was_killed_during_a_request(deploy: Deploy, tmp_path: Path) -> None:
    stack = deploy({"stays": STAYING_APP, "tells": PID})
    running = stack.start("stays", str(tmp_path))
    wait_until((tmp_path / "pid").exists)
    os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    told = running.get()["Payload"]
    assert told["errorType"] == "Runtime.ExitError"
    assert told["errorMessage"].endswith("Error: Runtime exited with error: signal: killed")
    assert process_exists(stack.value("tells"))


def test_kill_does_nothing_while_a_function_has_two_processes(deploy: Deploy, tmp_path: Path) -> None:
    stack, (first, second) = deploy({"stays": STAYING_APP}), (tmp_path / "first", tmp_path / "second")
    assert not stack.harness.kill_only_process("stays")
    running = []
    for where in (first, second):
        where.mkdir()
        running.append(stack.start("stays", str(where)))
        wait_until((where / "pid").exists)
    assert not stack.harness.kill_only_process("stays")
    os.kill(int((first / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    assert running[0].get()["FunctionError"] == "Unhandled"
    wait_until(lambda: stack.harness.kill_only_process("stays"))
    assert running[1].get()["FunctionError"] == "Unhandled"


def test_a_process_that_is_killed_while_idle_is_replaced_without_an_error(deploy: Deploy) -> None:
    stack = deploy({"tells": PID})
    for _ in range(5):
        pid = stack.value("tells")
        os.kill(pid, signal.SIGKILL)
        assert stack.value("tells") != pid
    assert {invocation.error for invocation in stack.harness.invocations} == {None}


def test_a_function_that_raises_keeps_its_process(deploy: Deploy) -> None:
    stack = deploy({"raises": "import os\ndef handler(event, context):\n    raise ValueError(os.getpid())\n"})
    assert len({stack.invoke("raises")["Payload"]["errorMessage"] for _ in range(2)}) == 1


def test_a_process_that_exits_after_its_response_is_replaced(deploy: Deploy) -> None:
    ends = (
        "import os, threading\n"
        "def handler(event, context):\n"
        "    threading.Thread(target=lambda: threading.Event().wait(0.05) or os._exit(1)).start()\n"
        "    return os.getpid()\n"
    )
    stack = deploy({"ends": ends})
    first = stack.value("ends")
    wait_until(lambda: not process_exists(first))
    assert stack.value("ends") != first


def test_an_init_that_times_out_runs_again_during_the_invocation(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "INIT_SECONDS", 0.05)
    stack = deploy({"slow": f"import time\ntime.sleep(0.2)\n{PID}"})
    pid = stack.value("slow")
    (invocation,) = stack.harness.invocations
    assert (invocation.pid, invocation.init_milliseconds) == (pid, None)  # all of it was Duration
    assert invocation.milliseconds > 200
    first, *_ = stack.log("slow")
    assert re.fullmatch(r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init\tStatus: timeout", first)


def test_a_short_peak_of_memory_above_the_limit_is_out_of_memory(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CHECK_SECONDS", 60)
    peaks = "def handler(event, context):\n    return len(bytearray(300 * 1024 * 1024))\n"
    stack = deploy({"peaks": peaks}, {"peaks": "{MemorySize: 128, Timeout: 20}"})
    assert stack.invoke("peaks")["Payload"]["errorType"] == "Runtime.OutOfMemory"


def test_a_function_with_a_changed_file_is_loaded_again(deploy: Deploy) -> None:
    stack = deploy({"changes": PID, "stays": PID})
    before, kept = stack.value("changes"), stack.value("stays")
    app = stack.directory / "changes" / "app.py"
    app.write_text("from forms import X\ndef handler(event, context):\n    return X\n", encoding="utf-8")
    app.with_name("forms.py").write_text("X = 'new'\n", encoding="utf-8")
    assert stack.value("changes") == "new"
    app.with_name("forms.py").write_text("X = 'newer'\n", encoding="utf-8")
    assert stack.value("changes") == "newer"
    assert stack.value("stays") == kept
    wait_until(lambda: not process_exists(before))


def test_loading_a_function_leaves_no_file_in_its_folder(deploy: Deploy) -> None:
    stack = deploy({"imports": "import forms\n" + PID})
    folder = stack.directory / "imports"
    (folder / "forms.py").write_text("", encoding="utf-8")
    stack.value("imports")
    assert sorted(path.name for path in folder.iterdir()) == ["app.py", "forms.py"]


def test_an_asynchronous_invocation_runs_the_function(deploy: Deploy) -> None:
    stack = deploy({"tells": PID})
    assert stack.invoke("tells", how="Event")["StatusCode"] == 202
    wait_until(lambda: len(stack.harness.invocations) == 1)
    assert stack.harness.invocations[0].error is None


def test_every_request_has_a_report_line_and_only_the_first_has_a_cold_start(deploy: Deploy) -> None:
    stack = deploy({"says": "def handler(event, context):\n    print('hello', event)\n"}, {"says": "{MemorySize: 256}"})
    for number in range(2):
        stack.value("says", number)
    wait_until(lambda: len(stack.log("says")) == 8)
    log = stack.log("says")
    for number, (start, said, end, report) in enumerate([log[:4], log[4:]]):
        id_ = stack.harness.invocations[number].request_id
        assert (start, said) == (f"START RequestId: {id_} Version: $LATEST", f"hello {number}")
        assert end == f"END RequestId: {id_}"
        init = r"\tInit Duration: [\d.]+ ms" if number == 0 else ""
        figures = r"Duration: [\d.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 256 MB\tMax Memory Used: \d+ MB"
        assert re.fullmatch(rf"REPORT RequestId: {id_}\t{figures}{init}", report)
