"""A resource is a function that reads the contents of a URI.

    @resource("config://app")
    def config() -> str: ...

    @resource("notes://{day}")
    def note(day: str) -> str: ...

The second URI is a template, because it has a variable. The variables are the function's parameters before `*`. Who
reads "notes://monday" gets the result of `note("monday")`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from mcp_functions.handlers import return_types
from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.completions import CompletableHandler
from mcp_functions.protocol import results
from mcp_functions.protocol.uri_templates import UriTemplate
from mcp_functions.protocol.uris import normal_form

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from mcp_functions.handlers.function_handler import HandlerOptions
    from mcp_functions.protocol.wire_types import Annotations, ListEntry, Model, Params, ResultObject
    from mcp_functions.rounds.round import Round

    class ResourceOptions(HandlerOptions, total=False):
        """The options of `@resource`."""

        mime_type: str | None
        size: int | None
        annotations: Annotations | Model | None
        ttl_ms: int
        cache_scope: CacheScope


CacheScope: TypeAlias = Literal["public", "private"]

SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*"  # RFC 3986, section 3.1
# Braces, for variables, and letters beyond ASCII are allowed, which the RFC forbids. Blanks and controls are not.
AFTER_SCHEME = r"[!-~\u00a0-\U0010ffff]+"
URI_OR_TEMPLATE = re.compile(f"{SCHEME}:{AFTER_SCHEME}")


class Resource(CompletableHandler[P, R]):
    """A function that reads one resource, or many if its URI is a template."""

    keeps_names = True  # the author wrote the variables in the URI

    def __init__(  # noqa: PLR0913 - each is an option of `@resource`
        self,
        function: Callable[P, R],
        *,
        uri: str,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Model | None = None,
        ttl_ms: int = 0,
        cache_scope: CacheScope = "private",
        **options: Unpack[HandlerOptions],
    ) -> None:
        """Read the function and its options; TypeError if one is wrong, or the URI has other variables."""
        _check_options(uri, size, ttl_ms, cache_scope)
        super().__init__(function, **options)
        self.uri = self.key = normal_form(uri)  # clients normalize it, and ask for the outcome
        self.mime_type = mime_type
        self._size = size
        self._annotations: Annotations | None = None
        if annotations is not None:
            from mcp_functions.protocol import hints

            self._annotations = hints.read_annotations(annotations)
        self._ttl_ms = ttl_ms
        self._cache_scope = cache_scope
        self._type = return_types.read_plain_type(self._signature.returns)
        self._template = UriTemplate(uri)
        variables = set(self._template.variables)
        self.kind = "resource_template" if variables else "resource"
        names = set(self.arguments.by_name)
        if names != variables:
            rule = f"its parameters before * must be the variables of {uri!r}"
            raise TypeError(f"{rule}: {sorted(variables)}, not {sorted(names)}")

    def describe(self) -> ListEntry:
        """Write its entry of `resources/list` or of `resources/templates/list`."""
        if self.kind == "resource_template":
            return self.write_entry(uriTemplate=self.uri, mimeType=self.mime_type, annotations=self._annotations)
        return self.write_entry(uri=self.uri, size=self._size, mimeType=self.mime_type, annotations=self._annotations)

    def call(self, params: Params, round_: Round | None) -> ResultObject:
        """Answer a `resources/read`, whose URI `lookup` has matched, with a ReadResourceResult."""
        uri = params["uri"]
        arguments = self.arguments.bind(self._template.match(uri) or {}, values_are_text=True)
        returned = self.run(arguments, round_)
        write = partial(return_types.write_returned, self.name, self._type)
        contents = results.read_resource_contents(returned, uri, self.mime_type, write)
        return {"contents": contents, "ttlMs": self._ttl_ms, "cacheScope": self._cache_scope}


def _check_options(uri: str, size: int | None, ttl_ms: object, cache_scope: object) -> None:
    if not URI_OR_TEMPLATE.fullmatch(uri):
        raise TypeError(f"{uri!r} is no URI: it begins with a scheme, as in notes://today")
    if type(ttl_ms) is not int or ttl_ms < 0:
        raise TypeError("ttl_ms is a whole number of milliseconds, 0 or more")
    if size is not None and size < 0:
        raise TypeError("size is a number of bytes, 0 or more")
    if cache_scope not in get_args(CacheScope):
        raise TypeError('cache_scope is "public" or "private"')
