r"""skills.json: the skills of a project, with the content of their files.

    {"skills": [{"entry": {"uri": "skill://plan-a-trip/SKILL.md", "frontmatter": {…}, "resources": [{"uri": …}, …]},
                 "scopes": ["trips:read"], "hidden": true}],
     "files": {"skill://plan-a-trip/SKILL.md": {"mimeType": "text/markdown", "text": "---\nname: plan-a-trip\n…"}}}

An entry is what clients get. A file that is no UTF-8 has `blob`, base64, in the place of `text`. `scopes` and `hidden`
are left out if they are empty.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.protocol.constants import SKILL_METHODS
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    from mcp_functions.protocol.catalog_types import Catalog, Hidden
    from mcp_functions.protocol.wire_types import ContentBlock, JSONObject, ListEntry, SkillEntry

    class Content(TypedDict):
        """The JSON of skills.json."""

        skills: list[JSONObject]
        files: dict[str, ContentBlock]


FILE = "skills.json"  # beside catalog.json
MAIN_FILE = "SKILL.md"
# "A directory resource is a resource whose `mimeType` is `inode/directory`."
DIRECTORY = "inode/directory"


class Skill(NamedTuple):
    """One skill."""

    entry: SkillEntry  # as skills/list and skills/get have it
    scopes: Sequence[str]  # the scopes that a caller's access token must grant, all of them
    hidden: bool  # whether callers without these scopes see no such skill
    restricted_by: str = ""  # as handlers have it (`http.access_tokens`)

    @property
    def name(self) -> str:
        """The name of the skill, which is that of its folder."""
        return str(self.entry["frontmatter"]["name"])

    @property
    def uri(self) -> str:
        """The URI of its SKILL.md."""
        return str(self.entry["uri"])

    @property
    def root(self) -> str:
        """The URI of its folder: "the `SKILL.md` URI with the `/SKILL.md` suffix removed and no trailing slash"."""
        return self.uri.removesuffix(f"/{MAIN_FILE}")


class Bundle:
    """The skills in one skills.json, which is read when a request first needs it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Keep the path of skills.json."""
        self._path = path

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Bundle:
        """Return a bundle of skills that no file has yet."""
        bundle = cls("")
        bundle._content = cast("Content", content)
        return bundle

    @cached_property
    def _content(self) -> Content:
        """The JSON of the file; Misconfigured if it is missing or damaged: the zip was not built from the project."""
        try:
            with open(self._path, encoding="utf-8") as file:  # noqa: PTH123 - faster than pathlib
                content: Content = json.load(file)
        except (OSError, ValueError) as error:
            raise Misconfigured(
                reason=f"{FILE} cannot be read: mcp-functions catalog writes it beside app.py"
            ) from error
        return content

    @cached_property
    def skills(self) -> list[Skill]:
        """The skills, sorted by their names."""
        written = self._content["skills"]
        return [Skill(each["entry"], each.get("scopes", ()), each.get("hidden", False)) for each in written]

    @property
    def files(self) -> Mapping[str, ContentBlock]:
        """The content of each file, by its URI: `mimeType`, and `text` or `blob`."""
        return self._content["files"]

    def contents(self, uri: str) -> ContentBlock:
        """Return the contents of a file, as `resources/read` has them."""
        contents: ContentBlock = {"uri": uri}
        contents.update(self.files[uri])
        return contents

    def resources(self, skill: Skill) -> dict[str, ListEntry]:
        """Return the entries of a skill's files and folders, as a list of resources has them, by their URIs."""
        found: dict[str, ListEntry] = {skill.root: _directory(skill.root)}
        for file in skill.entry["resources"]:
            uri = file["uri"]
            parent = uri.rpartition("/")[0]
            while parent not in found:
                found[parent] = _directory(parent)
                parent = parent.rpartition("/")[0]
            name = uri.rpartition("/")[2]
            found[uri] = {"uri": uri, "name": name, "mimeType": self.files[uri]["mimeType"], "size": file["size"]}
        # "`name` SHOULD be set from the `name` field of the `SKILL.md` YAML frontmatter", and so `description`.
        found[skill.uri] |= {"name": skill.name, "description": skill.entry["frontmatter"]["description"]}
        return found

    def add_to(self, catalog: Catalog) -> Catalog:
        """Return a catalog with these skills: each SKILL.md is a resource too, for clients that know no skills.

        Raises:
            ValueError: another handler of the catalog has the URI of a skill's file, or serves the skills of a server.
        """
        if not self.skills:
            return catalog
        for method in SKILL_METHODS:
            if method in catalog.get("methods", {}):
                place = f"functions/{catalog['methods'][method]}"
                raise ValueError(
                    f"{place} is an adopted server with skills of its own: serve these, or the folder skills/"
                )
        added = catalog.copy()
        added["resources"] = catalog["resources"] + [self._main_resource(skill, catalog) for skill in self.skills]
        added["skills"] = {skill.uri: self._digest(skill) for skill in self.skills}
        scopes = {scope for skill in self.skills for scope in skill.scopes}.union(catalog.get("scopes", ()))
        if scopes:
            added["scopes"] = sorted(scopes)
        hidden_skills = {skill.uri: sorted(skill.scopes) for skill in self.skills if skill.hidden}
        if hidden_skills:
            hidden: Hidden = catalog.get("hidden", {}).copy()
            hidden["resources"] = {**hidden.get("resources", {}), **hidden_skills}
            added["hidden"] = hidden
        return added

    def _main_resource(self, skill: Skill, catalog: Catalog) -> ListEntry:
        """Return the entry of a skill's SKILL.md; a ValueError says that a resource has the URI of one of its files."""
        resources = self.resources(skill)
        taken = sorted(catalog["functions"]["resources"].keys() & resources.keys())
        if taken:
            raise ValueError(
                f"a resource has the URI {taken[0]}, which is a file of the skill {skill.name!r}: rename one"
            )
        return resources[skill.uri]

    def _digest(self, skill: Skill) -> str:
        """Return a digest of all that a skill is: a changed file changes the catalog."""
        import hashlib

        text = json.dumps([skill.entry, list(skill.scopes), skill.hidden], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _directory(uri: str) -> ListEntry:
    """Return the entry of a folder; its name is the last part of its URI."""
    return {"uri": uri, "name": uri.rpartition("/")[2], "mimeType": DIRECTORY}
