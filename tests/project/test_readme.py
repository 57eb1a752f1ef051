"""The README's code runs, its commands exist, and its links lead somewhere."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.types import ElicitRequestParams, ElicitResult

from mcp_functions.local import Harness

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOOL, TEST, CLIENT = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_tool_of_the_readme_passes_the_test_of_the_readme() -> None:
    names: dict[str, Any] = {}
    exec(compile(TOOL + TEST, "README.md", "exec", dont_inherit=True), names)  # noqa: S102 - our own README
    names["test_a_seat_is_chosen"]()


def test_the_tool_of_the_readme_has_twenty_lines() -> None:
    assert len(TOOL.strip().splitlines()) <= 20


def test_the_client_of_the_readme_finishes_the_conversation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def ask_my_user(_context: object, params: ElicitRequestParams) -> ElicitResult:
        assert "How was this bug resolved" in params.message
        return ElicitResult(action="accept", content={"resolution": "Fixed"})

    with Harness(ROOT / "functions", state_dir=tmp_path) as harness:
        code = CLIENT.replace("http://127.0.0.1:8000/mcp", harness.url)
        wrapped = "async def conversation():\n" + textwrap.indent(code, "    ")
        names: dict[str, Any] = {"ask_my_user": ask_my_user}
        exec(wrapped, names)  # noqa: S102 - our own README
        asyncio.run(names["conversation"]())
    assert "Bug #4522 resolved as Fixed" in capsys.readouterr().out


def test_every_make_target_that_the_readme_names_exists() -> None:
    before, own, after = re.split(r"^(## A project of your own\n.*?)(?=^## )", README, flags=re.DOTALL | re.MULTILINE)
    scaffold = ROOT / "layers/shared/mcp_functions/local/scaffold/project/Makefile.in"  # which `init` writes
    for text, file in ((before + after, ROOT / "Makefile"), (own, scaffold)):
        makefile = file.read_text(encoding="utf-8")
        named = set(re.findall(r"`make ([a-z-]+)", text) + re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
        assert named
        for target in named:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (target, file)


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
