"""FastMCP's client lists, gets and reads the skills of a project, and verifies their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.skills.client import SkillsClientExtension
from mcp import MCPError

from mcp_functions_harness import Harness

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "skills" / "work-with-the-samples"
URI = "skill://work-with-the-samples/SKILL.md"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Harness(ROOT / "functions", state_dir=tmp_path_factory.mktemp("state")) as harness:
        yield harness.url


def test_the_client_reads_each_file_of_the_sample_skill_and_its_digest_is_right(url: str) -> None:
    async def read() -> dict[str, bytes]:
        async with Client(url, extensions=[SkillsClientExtension()]) as client:
            (listed,) = await client.list_skills()
            found = (await client.get_skill_mcp(URI)).skill
            assert found.model_dump() == listed.model_dump()
            assert found.resources != "dynamic"
            await client.read_skill(URI)  # compares digest, size and frontmatter, and raises if one differs
            files: dict[str, bytes] = {}
            for file in found.resources:
                (content,) = await client.read_resource(file.uri)
                raw = getattr(content, "text", "").encode()
                assert (file.size, file.digest) == (len(raw), f"sha256:{hashlib.sha256(raw).hexdigest()}")
                files[file.uri.partition("samples/")[2]] = raw
            return files

    there = {file.relative_to(SAMPLE).as_posix(): file.read_bytes() for file in SAMPLE.rglob("*.md")}
    assert anyio.run(read) == there


def test_the_client_hears_that_a_skill_is_unknown(url: str) -> None:
    async def ask(uri: Any) -> MCPError:  # noqa: ANN401 - wrong ones too
        async with Client(url, extensions=[SkillsClientExtension()]) as client:
            with pytest.raises(MCPError) as refused:
                await client.get_skill_mcp(uri)
            return refused.value

    assert anyio.run(ask, "skill://none/SKILL.md").error.message == "No skill is served at this URI"
    assert anyio.run(ask, "skill://work-with-the-samples").error.code == -32602


def test_the_sample_skill_names_the_sample_tools_and_no_other(url: str) -> None:
    async def names() -> set[str]:
        async with Client(url) as client:
            return {tool.name for tool in await client.list_tools()}

    text = (SAMPLE / "SKILL.md").read_text(encoding="utf-8")
    called = {line.partition("Call `")[2].partition("`")[0] for line in text.splitlines() if "Call `" in line}
    assert called
    assert called <= anyio.run(names)
