"""The page "Bring your server": its server is adopted, asked and checked as the page says.

The tests follow the order of the page.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fastmcp import Client as FastClient
from mcp import Client

from mcp_functions.adopt.options import OPTIONS
from mcp_functions_harness import catalog as catalog_file
from mcp_functions_harness.command import run
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.testing import Conversation
from tests.docs.pages import Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = Page.named("bring-your-server.md")
FRONT_DOOR = """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""


@pytest.fixture
def bank() -> Iterator[ModuleType]:
    """Load the page's server as the module `bank`."""
    module = ModuleType("bank")
    sys.modules["bank"] = module
    exec(PAGE.code("python server"), vars(module))  # noqa: S102 - our own page
    yield module
    del sys.modules["bank"]


def agree(talk: Conversation) -> Conversation:
    return talk.accept(**{key: {"agree": True} for key in talk.asked})


def test_the_original_server_cannot_ask_a_client_of_2026(bank: ModuleType) -> None:
    async def call() -> Any:  # noqa: ANN401 - of FastMCP
        async with FastClient(bank.mcp) as client:
            return await client.call_tool("transfer", {"amount": 5, "to": "Ada"}, raise_on_error=False)

    assert "unavailable on 2026-07-28" in str(anyio.run(call))


def test_the_adopted_server_asks_a_question_and_makes_one_transfer(bank: ModuleType) -> None:
    talk = Conversation(PAGE.run("python app")["handler"]).call("transfer", amount=5, to="Ada")
    assert talk.messages == {"question-1": "Moving 5 costs 1 EUR. Agree?"}
    agree(talk)
    assert talk.messages == {"question-2": "Move 5 to Ada now?"}
    assert agree(talk).text == "1. 5 to Ada"
    assert bank.moved == ["5 to Ada"]


def test_the_adopted_server_asks_its_question_behind_the_endpoint(tmp_path: Path) -> None:
    functions = tmp_path / "functions"
    for name, text in {
        "bank/bank.py": PAGE.code("python server"),
        "bank/app.py": PAGE.code("python app"),
        "mcp/app.py": FRONT_DOOR,
    }.items():
        (functions / name).parent.mkdir(parents=True, exist_ok=True)
        (functions / name).write_text(text, encoding="utf-8")
    catalog_file.write(functions, catalog_file.generate(functions))

    async def look(url: str) -> list[str]:
        async with Client(url) as client:
            assert client.instructions == "Ask before you move money."
            return [tool.name for tool in (await client.list_tools()).tools]

    with Harness(functions, state_dir=tmp_path / "state") as running:
        assert anyio.run(look, running.url) == ["balance", "transfer"]


def test_adopt_check_prints_the_line_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.py").write_text(PAGE.code("python server").strip() + "\n", encoding="utf-8")
    assert run(["adopt", "--check", "bank.py:mcp"]) == 1
    finding, asking = capsys.readouterr().out.splitlines()
    assert finding == PAGE.code("text").strip()
    assert asking.endswith('adopt(mcp, replay=["transfer"])')


def test_a_step_of_the_page_runs_once(bank: ModuleType) -> None:
    PAGE.run("python step")
    from mcp_functions import serve
    from mcp_functions.adopt import adopt

    talk = Conversation(serve(*adopt(bank.mcp, replay=["reserve"]))).call("reserve", amount=5, to="Ada")
    assert talk.accept(**{"question-1": {"value": "rent"}}).text == "1. 5 to Ada: rent"
    assert bank.moved == ["5 to Ada"]


def test_the_page_has_the_options_that_lambda_changes() -> None:
    rows = [
        f"| {', '.join(f'`{name}`' for name in option.names.split())} | {option.fate} | {option.means} |"
        for option in OPTIONS
        if option.fate in {"named", "refused"}
    ]
    assert "\n".join(["| Option | Fate | On Lambda |", "|---|---|---|", *rows, ""]) in PAGE.text


def test_the_two_lines_of_the_page_seal_the_states_of_a_server() -> None:
    assert PAGE.run("python seal")["server"].name == "calendar"
