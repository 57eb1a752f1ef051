"""A project that `init` writes, with a function of each kind and things of its author, from a folder to a URL."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.client.tasks import TaskClient
from tests.deployed import conversations
from tests.deployed.account import REAL, ROOT
from tests.deployed.project import Project
from tests.deployed.stack import Stack
from tests.docs.test_own_resources_page import CALLS, add_page
from tests.project.test_own_project import build as build_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.deployed.account import Account

NAME = "own"
AIRLINE = "of the airline"
OWN = {**CALLS, "flight_status": ({"flight": "LH 400"}, f"asked with {len(AIRLINE)} characters")}
KINDS = ("tool", "asking", "prompt", "resource", "task", "single_use")
WRITTEN: dict[str, tuple[dict[str, Any], str]] = {  # kind -> arguments, and what the answer has
    "tool": ({"text": "a word"}, "a word"),
    "asking": ({"text": "a word"}, "a word"),
    "task": ({"parts": 2}, "2"),
    "single_use": ({"amount": 5}, "5"),
}
ADOPTED = """\
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("letters")


class Sure(BaseModel):
    sure: bool


@server.tool()
async def send_letter(to: str, ctx: Context) -> str:
    outcome = await ctx.elicit(f"Send it to {to}?", Sure)
    return f"Sent to {to}" if outcome.action == "accept" and outcome.data.sure else "Kept"
"""


@pytest.fixture(scope="module")
def own(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Write the project of docs/own-resources.md, add a function of each kind, and deploy it."""
    project = Project(tmp_path_factory.mktemp(NAME), account)
    project.mcp_functions("init", ".")
    build_wheel(project.folder / "layers/dependencies/wheels")  # no package index has this version
    project.edit("samconfig.toml", r'stack_name = "[^"]*"', f'stack_name = "{NAME}"')
    for kind in KINDS:
        project.mcp_functions("new", kind, f"my_{kind}")
    (project.folder / "letters.py").write_text(ADOPTED, encoding="utf-8")
    project.mcp_functions("adopt", "letters.py:server", "--into", "functions")
    project.edit("functions/letters/app.py", r"replay=\[\]", 'replay=["send_letter"]')
    add_page(project.folder)
    project.build()
    project.deploy()
    stack = Stack(NAME, project, "")
    secret = stack.resources["AirlineSecret"]["PhysicalResourceId"]
    account.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=AIRLINE)
    with account.served(stack.outputs["Endpoint"]) as url:
        yield Stack(NAME, project, url)
    project.sam("delete", "--no-prompts", "--stack-name", NAME, "--region", str(account.session.region_name))


def answer(_key: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer each question with the first thing that its form allows."""
    (schema,) = request["params"]["requestedSchema"]["properties"].items()
    name, wanted = schema
    value = wanted.get("enum", [True if wanted["type"] == "boolean" else "yes"])[0]
    return {"action": "accept", "content": {name: value}}


def test_the_endpoint_lists_the_authors_functions(own: Stack) -> None:
    conversations.lists(own)


@pytest.mark.parametrize("name", OWN)
def test_a_function_uses_its_authors_table_secret_or_package(name: str, own: Stack) -> None:
    arguments, expected = OWN[name]
    result = TaskClient(own.url, timeout=60).run(name, arguments, answer)
    assert expected in result["content"][0]["text"]


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_function_that_new_wrote_answers_deployed(kind: str, own: Stack) -> None:
    arguments, expected = WRITTEN[kind]
    own.forget()
    result = TaskClient(own.url, timeout=60).run(f"my_{kind}", arguments, answer)
    assert expected in result["content"][0]["text"], result


def test_an_adopted_server_asks_and_answers_deployed(own: Stack) -> None:
    own.forget()
    result = TaskClient(own.url, timeout=60).run("send_letter", {"to": "Ada"}, answer)
    assert "Sent to Ada" in result["content"][0]["text"], result


@pytest.mark.skipif(REAL, reason="a real account needs no emulator")
def test_one_command_leads_from_a_build_to_a_url_and_ends_what_it_began(own: Stack) -> None:
    folder = own.project.folder
    (folder / ".venv-ministack").symlink_to(ROOT / ".venv-ministack")
    command = [sys.executable, "-m", "mcp_functions_harness", "emulator", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own words
        command, cwd=folder, env=own.project.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout
        said = ""
        for line in running.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        found = re.search(r"Clients of MCP: (\S+)", said)
        assert found, said
        result = TaskClient(found[1], timeout=60).run("my_single_use", {"amount": 5}, answer)
        assert "Paid 5" in result["content"][0]["text"]
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 0
    address = re.findall(r"AWS_ENDPOINT_URL=http://127.0.0.1:(\d+)", said)[0]
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(address)), timeout=5):
        pass
