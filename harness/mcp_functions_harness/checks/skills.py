"""Checks the folder skills/: wrong names, frontmatter, links and sizes, and whether the endpoint has the skills."""

from collections.abc import Iterator

from mcp_functions import skills as served
from mcp_functions_harness import skills
from mcp_functions_harness.checks.project import FOLDER, Project
from mcp_functions_harness.lambdas.functions import FRONT_DOOR


def every_skill_can_be_served(project: Project) -> Iterator[str]:
    """Check every file of every skill, and that skills.json of the endpoint has them as they are."""
    examined = skills.examine(project.root / FOLDER)
    if examined.complaints:
        yield from examined.complaints
        return
    file = project.root / FOLDER / FRONT_DOOR / served.FILE
    written = file.read_text(encoding="utf-8") if file.is_file() else ""
    if written != (skills.text(examined.content) if examined.content["skills"] else ""):
        yield f"{FOLDER}/{FRONT_DOOR}/{served.FILE} does not have the skills as they are in skills/: run make catalog"
