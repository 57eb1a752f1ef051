"""skills.json of a project, from the folders in skills/."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mcp_functions.skills.bundle import MAIN_FILE
from mcp_functions_harness.skills import folder
from mcp_functions_harness.skills.folder import SkillFolder

FOLDER = "skills"


class Examined(NamedTuple):
    """The skills of a project."""

    content: Mapping[str, Any]  # of skills.json (`mcp_functions.skills.bundle`)
    complaints: list[str]  # what is wrong, with its file and line; then the content is not complete


def examine(directory: Path) -> Examined:
    """Read and check the skills in skills/, beside the directory of functions."""
    root = directory.resolve().parent / FOLDER
    complaints: list[str] = []
    skills: list[SkillFolder] = []
    if root.is_symlink():
        return Examined({"skills": [], "files": {}}, [f"{FOLDER}: it is a link: make it a folder of the project"])
    for entry in sorted(root.iterdir()) if root.is_dir() else ():
        if entry.is_symlink():
            complaints.append(f"{FOLDER}/{entry.name}: it is a link: copy the skill into the project")
        elif entry.is_dir() and not entry.name.startswith((".", "_")):
            skills.append(folder.read(entry))
    uris = {folder.uri_of(skill.name, path) for skill in skills for path in skill.files}
    for skill in skills:
        complaints += skill.complaints
        complaints += folder.wrong_links(skill, uris)
    files = {}
    for skill in skills:
        files.update(_contents(skill))
    return Examined({"skills": [_entry(skill) for skill in skills], "files": files}, complaints)


def uris(directory: Path) -> list[str]:
    """Return the URIs of the skills beside a directory of functions; none if one of them is wrong."""
    examined = examine(directory)
    return [] if examined.complaints else [skill["entry"]["uri"] for skill in examined.content["skills"]]


def text(content: Mapping[str, Any]) -> str:
    """Return the text of skills.json; equal skills have equal texts."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _entry(skill: SkillFolder) -> dict[str, Any]:
    """Describe a skill: "It lists every file of the skill, each exactly once"."""
    resources = [
        {
            "uri": folder.uri_of(skill.name, path),
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "size": len(content),
        }
        for path, content in sorted(skill.files.items())
    ]
    entry = {"uri": folder.uri_of(skill.name, MAIN_FILE), "frontmatter": skill.values, "resources": resources}
    found: dict[str, Any] = {"entry": entry}
    if skill.scopes:
        found["scopes"] = skill.scopes
    if skill.hidden:
        found["hidden"] = True
    return found


def _contents(skill: SkillFolder) -> dict[str, dict[str, str]]:
    """Return what `resources/read` answers for each file, by its URI."""
    contents = {}
    for path, content in sorted(skill.files.items()):
        decoded = folder.as_text(content)
        part = {"blob": base64.b64encode(content).decode()} if decoded is None else {"text": decoded}
        contents[folder.uri_of(skill.name, path)] = {"mimeType": folder.media_type(path, content), **part}
    return contents
