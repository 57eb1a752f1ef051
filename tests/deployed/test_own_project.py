"""A project that `init` writes, with a function of each kind and things of its author's, from an empty folder to a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.client.tasks import TaskClient
from tests.deployed import conversations
from tests.deployed.project import Project
from tests.deployed.stack import Stack
from tests.docs.test_own_resources_page import CALLS, add_page
from tests.project.test_own_project import build as build_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.deployed.account import Account

pytestmark = pytest.mark.xdist_group("own")

NAME = "own"
KINDS = ("tool", "asking", "prompt", "resource", "task", "single_use")


@pytest.fixture(scope="module")
def own(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Write the project of docs/own-resources.md, add a function of each kind, and deploy it."""
    project = Project(tmp_path_factory.mktemp(NAME), account)
    project.mcp_functions("init", ".")
    build_wheel(project.folder / "layers/dependencies/wheels")  # no package index has this version
    project.edit("samconfig.toml", r'stack_name = "[^"]*"', f'stack_name = "{NAME}"')
    for kind in KINDS:
        project.mcp_functions("new", kind, f"my_{kind}")
    add_page(project.folder)
    project.build()
    project.deploy()
    stack = Stack(NAME, project, "")
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


def test_functions_use_their_own_table_and_package(own: Stack) -> None:
    for name, (arguments, expected) in CALLS.items():
        result = TaskClient(own.url, timeout=60).run(name, arguments, answer)
        assert expected in result["content"][0]["text"]


@pytest.mark.parametrize("kind", ["tool", "asking", "task", "single_use"])
def test_a_function_that_new_wrote_answers_deployed(kind: str, own: Stack) -> None:
    own.forget()
    result = TaskClient(own.url, timeout=60).run(f"my_{kind}", {"text": "a word"}, answer)
    assert "a word" in result["content"][0]["text"], result
