"""`mcp-functions adopt` reports side effects before a question with their lines, and writes a function's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcp_functions_harness import checks
from mcp_functions_harness.adoption.check import check_source
from mcp_functions_harness.adoption.known_calls import (
    BACKGROUND,
    CHANGES,
    CONCURRENT,
    MODULE_STATE,
    NOT_DELIVERED,
    ROUTE,
    SESSION,
    STREAM,
    UNKNOWN,
    WRITES,
)
from mcp_functions_harness.command import run

SERVERS = Path(__file__).parents[1] / "adopt/servers"
SERVER_IMPORTS = """
import asyncio, json, random, time
from mcp.server.mcpserver import Context, MCPServer
from mcp_functions.adopt import step
from bank import ledger
server = MCPServer("s")
counts = {}
total = 0

def helper(amount):
    return ledger.reserve(amount)

async def ask(ctx, message):
    return await ctx.elicit(message, bool)
"""
ASKING_TOOL = "\n@server.tool()\nasync def pay(ctx: Context, amount: int) -> str:\n"


def find_side_effects(
    tmp_path: Path, body: str, head: str = SERVER_IMPORTS + ASKING_TOOL
) -> list[tuple[str, str, str]]:
    """Check a tool with this body; return the text of each line that was found, with its name and reason."""
    path = tmp_path / "server.py"
    path.write_text(head + body, encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(lines[each.line - 1].strip(), each.name, each.reason) for each in check_source(path).findings]


@pytest.mark.parametrize(
    ("line", "name", "reason"),
    [
        ("ledger.charge(amount)", "ledger.charge", WRITES),
        ("open('log', 'w')", "open", WRITES),
        ("ledger.quote(amount)", "ledger.quote", UNKNOWN),
        ("price = random.randint(1, 9)", "random.randint", CHANGES),
        ("now = datetime.now()", "datetime.now", CHANGES),
        ("counts['pay'] = 1", "counts", MODULE_STATE),
        ("await ctx.set_state('n', 1)", "ctx.set_state", SESSION),
        ("asyncio.create_task(ledger.sync())", "asyncio.create_task", BACKGROUND),
        ("await ctx.notify_tools_changed()", "ctx.notify_tools_changed", NOT_DELIVERED),
        ("await ctx.close_sse_stream()", "ctx.close_sse_stream", STREAM),
        ("await asyncio.gather(ask(ctx, 'a'), ask(ctx, 'b'))", "asyncio.gather", CONCURRENT),
    ],
)
def test_a_side_effect_before_a_question_is_reported_with_its_line(
    tmp_path: Path, line: str, name: str, reason: str
) -> None:
    assert (line, name, reason) in find_side_effects(
        tmp_path, f"    {line}\n    return await ctx.elicit('Sure?', bool)\n"
    )


def test_a_side_effect_in_a_helper_function_is_found_at_its_call(tmp_path: Path) -> None:
    body = "    helper(amount)\n    return await ask(ctx, 'Sure?')\n"
    assert find_side_effects(tmp_path, body) == [("return ledger.reserve(amount)", "ledger.reserve", UNKNOWN)]


def test_a_change_of_a_module_variable_is_found_without_a_question(tmp_path: Path) -> None:
    body = "    global total\n    total += amount\n    return 'paid'\n"
    assert find_side_effects(tmp_path, body) == [("total += amount", "total", MODULE_STATE)]


def test_a_side_effect_after_a_question_in_a_loop_is_found(tmp_path: Path) -> None:
    body = "    for n in range(2):\n        await ask(ctx, str(n))\n        ledger.post(n)\n    return 'done'\n"
    assert find_side_effects(tmp_path, body) == [("ledger.post(n)", "ledger.post", WRITES)]


@pytest.mark.parametrize(
    "body",
    [
        "    step('charge', ledger.charge, amount)\n    return await ask(ctx, 'Sure?')\n",
        "    text = json.dumps({'n': len(str(amount))}).strip()\n    return await ask(ctx, text)\n",
        "    sure = await ask(ctx, 'Sure?')\n    ledger.charge(amount)\n    return 'paid'\n",
        "    await ctx.report_progress(1)\n    await ctx.info('asking')\n    return await ask(ctx, 'Sure?')\n",
        "    ledger.charge(amount)\n    return 'it asks nobody'\n",
    ],
)
def test_steps_reads_and_code_after_the_last_question_are_no_findings(tmp_path: Path, body: str) -> None:
    assert find_side_effects(tmp_path, body) == []


def test_functions_of_a_low_level_server_and_routes_are_found(tmp_path: Path) -> None:
    source = """
async def call(ctx, params):
    ledger.charge(1)
    return await ctx.session.elicit_form("Sure?", {})

server = Server("s", on_call_tool=call)

@server.custom_route("/health", methods=["GET"])
async def health(request):
    return None
"""
    assert [(name, reason) for _line, name, reason in find_side_effects(tmp_path, source, "")] == [
        ("ledger.charge", WRITES),
        ("server.custom_route", ROUTE),
    ]


def test_the_command_adopt_lists_findings_and_the_tools_that_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.py"
    path.write_text(
        SERVER_IMPORTS + ASKING_TOOL + "    ledger.charge(amount)\n    return await ask(ctx, 'Sure?')\n",
        encoding="utf-8",
    )
    assert run(["adopt", "--check", f"{path}:server"]) == 1
    output_lines = capsys.readouterr().out.splitlines()
    assert output_lines == [
        f"{path}:18: pay: ledger.charge: {WRITES}",
        'Refused until you accept that they run again in every round: adopt(server, replay=["pay"])',
    ]
    assert run(["adopt", "--check", f"{SERVERS / 'bank.py'}:server"]) == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["server.py"], "server.py is not FILE.py:VARIABLE"),
        (["nowhere.py:server"], "nowhere.py cannot be read as Python"),
        ([f"{SERVERS / 'bank.py'}:server", "--into", "elsewhere"], "--into names a project's functions/ folder"),
    ],
)
def test_a_server_that_cannot_be_adopted_is_reported_in_one_line(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", *words]) == 2
    assert problem in capsys.readouterr().err


def test_the_error_for_a_server_in_a_package_explains_how_to_move_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "server.py").write_text("from .tools import server\n", encoding="utf-8")
    assert run(["adopt", f"{tmp_path / 'server.py'}:server", "--into", "functions"]) == 2
    assert "server.py:1 imports from its own package" in capsys.readouterr().err


def test_adopt_into_writes_a_function_with_tests_that_compare_its_lists_with_the_original(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, source = tmp_path / "project", tmp_path / "shop"
    assert run(["init", str(project)]) == 0
    source.mkdir()
    (source / "prices.py").write_text("PRICE = 7\n", encoding="utf-8")
    (source / "server.py").write_text(
        "from mcp.server.mcpserver import MCPServer\nfrom prices import PRICE\n\nmcp = MCPServer('shop')\n\n"
        "@mcp.tool()\ndef price(item: str) -> int:\n    '''Say a price.'''\n    return PRICE\n",
        encoding="utf-8",
    )
    assert run(["adopt", f"{source / 'server.py'}:mcp", "--into", str(project / "functions")]) == 0
    assert "Not carried over" in capsys.readouterr().out
    written = sorted(path.name for path in (project / "functions/shop").glob("*.*"))
    assert written == ["app.py", "prices.py", "requirements.txt", "server.py"]
    assert (project / "functions/shop/requirements.txt").read_text(encoding="utf-8") == "mcp==2.3.0\n"
    assert list(checks.complaints(checks.read(project))) == []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/functions/test_shop.py"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)  # noqa: S603 - of this test
    assert ran.returncode == 0, ran.stdout
