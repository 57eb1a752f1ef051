"""Answers the requests about skills, and passes every other request on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.handlers.catalog import server_info
from mcp_functions.handlers.lists import page
from mcp_functions.handlers.lookup import text_param
from mcp_functions.protocol.constants import SKILL_METHODS
from mcp_functions.protocol.errors import UnknownName
from mcp_functions.protocol.messages import Result, complete
from mcp_functions.skills.bundle import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import ResultObject
    from mcp_functions.settings import Settings
    from mcp_functions.skills.bundle import Bundle, Skill

# One page has at most so many skills: with the most files that a skill may have, it is still smaller than 6 MB.
MOST_SKILLS_OF_A_PAGE = 25


class Skills:
    """Answers requests about the skills of a bundle."""

    def __init__(
        self, bundle: Bundle, catalog: Catalog, settings: Settings, answer_other: Callable[[Request], AnyResult]
    ) -> None:
        """Read nothing yet; `answer_other` answers every other request."""
        self._bundle = bundle
        self._settings = settings
        self._answer_other = answer_other
        self._server_info = server_info(catalog, settings.server_info)

    def answer(self, request: Request) -> AnyResult:
        """Answer a request; McpError if no skill has its URI, or the caller may not read it."""
        skills = self._seen_by(request)
        if request.method in SKILL_METHODS and skills:  # who sees none sees a server without skills
            return self._answer_method(request, skills)
        uri = request.params.get("uri")
        if request.method == "resources/read" and isinstance(uri, str) and uri in self._bundle.files:
            for skill in skills:
                if uri.startswith(f"{skill.root}/"):
                    return self._read(request, skill, uri)
        return self._answer_other(request)

    def _answer_method(self, request: Request, skills: list[Skill]) -> Result:
        """Answer one of the SKILL_METHODS."""
        match request.method:
            case "skills/list":
                return self._list(request, skills)
            case "skills/get":
                return self._get(request, skills)
        return self._read_directory(request, skills)

    def _seen_by(self, request: Request) -> list[Skill]:
        """Return the skills that the caller sees."""
        skills = self._bundle.skills
        if not any(skill.hidden for skill in skills):
            return skills
        from mcp_functions.visibility import held_scopes

        held = held_scopes(request.scopes, self._settings)
        return [skill for skill in skills if not skill.hidden or held is None or held.issuperset(skill.scopes)]

    def _list(self, request: Request, skills: list[Skill]) -> Result:
        """Answer `skills/list`: "An entry is atomic, and a skill's `resources` set is never split across pages."."""
        entries = [skill.entry for skill in skills]
        size = min(self._settings.page_size, MOST_SKILLS_OF_A_PAGE)
        return self._cached(page("skills", entries, request.params.get("cursor"), size))

    def _get(self, request: Request, skills: list[Skill]) -> Result:
        """Answer `skills/get`.

        "If the URI does not identify a skill the server serves, the server MUST return error `-32602`".
        """
        uri = text_param(request.params, "uri")
        for skill in skills:
            if skill.uri == uri:
                self._authorize(request, skill)
                return self._cached({"skill": skill.entry})
        raise UnknownName(message="No skill is served at this URI")

    def _read_directory(self, request: Request, skills: list[Skill]) -> Result:
        """Answer `resources/directory/read`: "every direct child of the directory".

        "If the URI does not exist, or exists but is not a directory resource, the server MUST return error `-32602`".
        """
        uri = text_param(request.params, "uri")
        for skill in skills:
            resources = self._bundle.resources(skill)
            if uri not in resources:
                continue
            self._authorize(request, skill)
            if resources[uri]["mimeType"] != DIRECTORY:
                raise UnknownName(message="This URI is a file, and no directory")
            children = [each for child, each in sorted(resources.items()) if child.rpartition("/")[0] == uri]
            result = page("resources", children, request.params.get("cursor"), self._settings.page_size)
            return Result(complete(result, self._server_info))
        raise UnknownName(message="No directory is served at this URI")

    def _read(self, request: Request, skill: Skill, uri: str) -> Result:
        """Answer `resources/read` of a skill's file."""
        self._authorize(request, skill)
        return self._cached({"contents": [self._bundle.contents(uri)]})

    def _authorize(self, request: Request, skill: Skill) -> None:
        """Check that the caller's token has the scopes of a skill. The log names the skill in any case."""
        observability.current().handler = skill.name
        if skill.scopes:
            from mcp_functions.http import access_tokens

            access_tokens.require_scopes(skill, request, self._settings)

    def _cached(self, result: ResultObject) -> Result:
        """Complete a result: "`ttlMs` and `cacheScope` are REQUIRED". No cache shares what needs scopes."""
        result.update(self._settings.cache_hints)
        if any(skill.scopes for skill in self._bundle.skills):
            result["cacheScope"] = "private"
        return Result(complete(result, self._server_info))
