"""A FastMCP server that ships skills keeps them: as resources, and by the methods of the extension (SEP-2640).

The client is FastMCP's own, against the original in this process, and against the adopted server behind an endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fastmcp import Client, FastMCP
from fastmcp.skills import Skill
from fastmcp.skills.client import SkillsClientExtension
from fastmcp.skills.provider import SkillCatalogProvider
from mcp import MCPError

from mcp_functions.adopt import adopt
from mcp_functions.handlers import catalog
from mcp_functions_harness import Harness
from mcp_functions_harness import catalog as catalog_file

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
from fastmcp import FastMCP
from fastmcp.skills import Skill
from fastmcp.skills.provider import SkillCatalogProvider

skill = Skill(name="review", description="Review changes.", instructions="Look twice.")
server = FastMCP("skills", providers=[SkillCatalogProvider([skill])])
"""
APPS = {
    "skills": "from skills import server\nfrom mcp_functions import serve\nfrom mcp_functions.adopt import adopt\n\n"
    "handler = serve(*adopt(server))\n",
    "mcp": "from pathlib import Path\nfrom mcp_functions import serve_catalog\n\n"
    'handler = serve_catalog(Path(__file__).with_name("catalog.json"))\n',
}


async def read_skills(target: Any) -> list[Any]:  # noqa: ANN401 - a server or a URL
    """Read everything about the skills of a server."""
    async with Client(target, extensions=[SkillsClientExtension()]) as client:
        listed = await client.list_skills()
        found = await client.get_skill_mcp(listed[0].uri)
        assert found.skill.resources != "dynamic"
        files = [await client.read_skill(each.uri) for each in listed]
        with pytest.raises(MCPError) as refused:
            await client.get_skill_mcp("skill://unknown/SKILL.md")
        return [listed, found.skill, files, refused.value.error]


def test_an_adopted_server_serves_the_skills_of_the_original(tmp_path: Path) -> None:
    functions = tmp_path / "functions"
    for name, text in APPS.items():
        (functions / name).mkdir(parents=True)
        (functions / name / "app.py").write_text(text, encoding="utf-8")
    (functions / "skills/skills.py").write_text(SERVER, encoding="utf-8")
    catalog_file.write(functions, catalog_file.generate(functions))
    names: dict[str, Any] = {}
    exec(SERVER, names)  # noqa: S102 - the server above
    with Harness(functions, state_dir=tmp_path / "state") as running:
        assert anyio.run(read_skills, running.url) == anyio.run(read_skills, names["server"])


def test_the_catalog_names_the_function_that_serves_the_methods_of_an_extension() -> None:
    first, second = (
        FastMCP(name, providers=[SkillCatalogProvider([Skill(name=name, description="One.", instructions="Do.")])])
        for name in ("first", "second")
    )
    assert catalog.build(adopt(first), "first")["methods"] == {"skills/get": "first", "skills/list": "first"}
    # Either of two servers could have the skill, so neither is asked.
    assert "methods" not in catalog.build_project({"first": adopt(first), "second": adopt(second)})
