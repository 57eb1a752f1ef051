"""Skills (SEP-2640): folders of files that teach a model a task, which clients list, read and verify.

    skills/plan-a-trip/SKILL.md          in the project: instructions, with a name and a description at the top
    functions/mcp/skills.json            what `mcp-functions catalog` makes of all skills, for the zip of the endpoint
    skill://plan-a-trip/SKILL.md         the resource that a client reads

`bundle` reads skills.json at the first request about a skill. `methods` answers skills/list, skills/get,
resources/directory/read and resources/read of a skill's files. The command checks the folders before it writes them
(`mcp_functions_harness.skills`), so these modules read no path, no YAML and no Markdown.

Quotations are from the specification of the extension, "Skills" (modelcontextprotocol/ext-skills, stable).
"""

from __future__ import annotations

from mcp_functions.skills.bundle import FILE, Bundle
from mcp_functions.skills.methods import Skills

__all__ = ["FILE", "Bundle", "Skills"]
