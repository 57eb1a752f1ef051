"""Each dialect over HTTP, from the harness: in both placements, by two people, and with a process for each request."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness, catalog, environment
from tests.dialects.clients import MultiTurnClient, PersistentClient, StateClient, accept
from tests.dialects.test_sep_1685 import fill
from tests.dialects.wires import Http
from tests.support import modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DIALECTS = "sep-2322-tasks,sep-1858,sep-1685"
ROOT = Path(__file__).parents[2]
FRONT_DOOR = """
from pathlib import Path
from mcp_functions import serve_catalog
handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""
RESOLVE = {"name": "update_work_item", "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}}}
RESOLVED = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
DOOR, OWN = "through the front door", "at the function's own endpoint"
IN_PROCESS = [(modes.IN_PROCESS, DOOR), (modes.IN_PROCESS, OWN)]
# a process for each request takes a while, so at one of the two
IN_FRESH_PROCESSES = {at: [*IN_PROCESS, (modes.RUNTIME, at)] for at in (DOOR, OWN)}
REACHED = ("harness", "reach")
PATIENCE = 60  # seconds for a worker


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a project: the function of SEP-1685, the echo of SEP-2322, and an endpoint."""
    functions = tmp_path_factory.mktemp("project") / "functions"
    shutil.copytree(ROOT / "functions" / "update_work_item", functions / "update_work_item")
    shutil.copytree(Path(__file__).with_name("echo"), functions / "echo")
    (functions / "mcp").mkdir()
    (functions / "mcp" / "app.py").write_text(FRONT_DOOR, encoding="utf-8")
    catalog.write(functions, catalog.generate(functions))
    return functions


@pytest.fixture(scope="module")
def harness(request: pytest.FixtureRequest, project: Path) -> Iterator[Harness]:
    """Functions run in process, or each request in a process of the Lambda runtime that has answered none before."""
    runtime = modes.is_runtime(request.param)
    state = project.parent / "state"
    with (
        environment.applied({"MCP_DIALECTS": DIALECTS}),
        Harness(project, state_dir=state, runtime=runtime, reuse=not runtime, auth="jwt") as running,
    ):
        yield running


@pytest.fixture
def reach(request: pytest.FixtureRequest, harness: Harness) -> Callable[..., Http]:
    """Reach a function as a given caller, in the placement of the parameter."""
    assert harness.issuer
    token = harness.issuer.token

    def at(function: str, who: str = "alice") -> Http:
        own = "" if request.param == DOOR else f"/{function}"
        return Http(f"{harness.url}{own}", token(subject=who))

    return at


def text(result: Mapping[str, Any]) -> str:
    return str(result["content"][0]["text"])


def ended(client: PersistentClient, task_id: str, *statuses: str) -> dict[str, Any]:
    """Poll until a task has one of some statuses."""
    until = time.monotonic() + PATIENCE
    while (task := client.get(task_id))["status"] not in statuses:
        assert time.monotonic() < until, task
        time.sleep(0.05)
    return task


@pytest.mark.parametrize(REACHED, IN_FRESH_PROCESSES[DOOR], indirect=True)
def test_a_client_of_sep_1858_completes_a_conversation_over_http(reach: Callable[..., Http]) -> None:
    client = MultiTurnClient(reach("update_work_item"))
    assert text(client.run("tools/call", RESOLVE, fill)["result"]) == RESOLVED
    assert len(client.replies) == 3


@pytest.mark.parametrize(REACHED, IN_FRESH_PROCESSES[OWN], indirect=True)
def test_a_client_of_sep_1685_completes_a_conversation_in_three_requests_over_http(reach: Callable[..., Http]) -> None:
    client = StateClient(reach("update_work_item"))
    assert text(client.run("tools/call", RESOLVE, fill)["result"]) == RESOLVED
    assert len(client.replies) == 3


@pytest.mark.parametrize(REACHED, IN_PROCESS, indirect=True)
def test_another_principal_cannot_answer_a_question(reach: Callable[..., Http]) -> None:
    alice, bob = (MultiTurnClient(reach("update_work_item", who)) for who in ("alice", "bob"))
    turn = alice.turn(alice.request("tools/call", RESOLVE))
    assert turn is not None
    responses = [{"jsonrpc": "2.0", "id": one["id"], "result": fill(one)} for one in turn[0]]
    asked = StateClient(reach("update_work_item")).request("tools/call", RESOLVE).messages[-1]
    theirs = StateClient(reach("update_work_item", "bob"))
    for reply in (bob.answer(responses, turn[1]), theirs.post(theirs.response(asked, fill))):
        assert (reply.status, reply.messages[0]["error"]["data"]) == (400, {"reason": "invalid_request_state"})


@pytest.mark.parametrize(REACHED, IN_PROCESS, indirect=True)
@pytest.mark.parametrize("option", [1, 2])
def test_a_client_of_each_option_of_sep_1685_completes_a_conversation_over_http(
    reach: Callable[..., Http], option: int
) -> None:
    client = StateClient(reach("update_work_item"), option, objects=option == 1)
    assert text(client.run("tools/call", RESOLVE, fill)["result"]) == RESOLVED


@pytest.mark.parametrize(REACHED, IN_PROCESS, indirect=True)
def test_a_client_of_sep_2322_completes_the_echo_task_over_http(reach: Callable[..., Http]) -> None:
    alice, bob = PersistentClient(reach("echo")), PersistentClient(reach("echo", "bob"))
    task_id = alice.call("echo")["task"]["taskId"]
    ended(alice, task_id, "input_required")
    asked = alice.result(task_id)
    assert asked["resultType"] == "input_required"
    responses = {"inputResponses": {"echo_input": accept(input="Hello World!")}, "requestState": asked["requestState"]}
    assert bob.answer(task_id, **responses)["message"] == "Invalid or expired requestState"
    alice.answer(task_id, **responses)
    ended(alice, task_id, "completed")
    assert text(alice.result(task_id)) == "Echo: Hello World!"


@pytest.mark.parametrize("harness", [modes.IN_PROCESS], indirect=True)
def test_a_turn_continues_at_another_url(harness: Harness) -> None:
    assert harness.issuer
    token = harness.issuer.token(subject="alice")
    door, own = Http(harness.url, token), Http(f"{harness.url}/update_work_item", token)
    for first, second in ((door, own), (own, door)):
        turn = MultiTurnClient.turn(MultiTurnClient(first).request("tools/call", RESOLVE))
        assert turn is not None
        responses = [{"jsonrpc": "2.0", "id": one["id"], "result": fill(one)} for one in turn[0]]
        again = MultiTurnClient.turn(MultiTurnClient(second).answer(responses, turn[1]))
        assert again is not None
        assert again[0][0]["params"]["message"] == "Since this is a duplicate, which work item is the original?"


@pytest.mark.parametrize("harness", [modes.IN_PROCESS], indirect=True)
def test_the_endpoint_lists_its_dialects(harness: Harness) -> None:
    assert harness.issuer
    client = MultiTurnClient(Http(harness.url, harness.issuer.token(subject="alice")))
    (message,) = client.request("server/discover", {}).messages
    assert message["result"]["capabilities"]["experimental"] == {name: {} for name in DIALECTS.split(",")}
