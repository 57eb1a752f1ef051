"""The folder skills/ of a project: reads it, checks it, and makes skills.json of it.

    skills/plan-a-trip/SKILL.md                a skill is a folder with a SKILL.md, which begins with YAML
    skills/plan-a-trip/references/fares.md     any other files are for the model, which reads them when it needs them
    functions/mcp/skills.json                  all of them, for the zip of the endpoint (`mcp_functions.skills`)

A skill is text that a model follows, and its files go to every host that lists it. So what is not plainly a file of the
skill is refused here, with its file and line, and nothing of it is checked on Lambda.
"""

from mcp_functions_harness.skills.bundle import FOLDER, Examined, examine, text, uris

__all__ = ["FOLDER", "Examined", "examine", "text", "uris"]
