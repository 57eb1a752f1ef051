"""A resource, or a family of resources named by a URI template: a function that reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.prompts import CompletableHandler
from mcp_functions.protocol import results, uri_templates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import HandlerOptions
    from mcp_functions.protocol.wire_types import Annotations, Model

    class ResourceOptions(HandlerOptions, total=False):
        """The options of `@resource`."""

        mime_type: str | None
        size: int | None
        annotations: Annotations | Model | None
        ttl_ms: int
        cache_scope: CacheScope


CacheScope: TypeAlias = Literal["public", "private"]

# RFC 3986, section 3: a scheme, a colon, and no blanks or control characters; braces enclose a variable
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~\u00a0-\U0010ffff]+")


def _check(uri: str, ttl_ms: int, cache_scope: str, size: int | None) -> None:
    if not URI.fullmatch(uri):
        message = f"{uri!r} is no URI: it begins with a scheme, as in notes://today"
    elif type(ttl_ms) is not int or ttl_ms < 0 or (size is not None and size < 0):
        message = "ttl_ms is a whole number of milliseconds, 0 or more; size one of bytes"
    elif cache_scope not in ("public", "private"):
        message = 'cache_scope is "public" or "private"'
    else:
        return
    raise TypeError(message)


class Resource(CompletableHandler[P, R]):
    """A function that reads one resource, or a family of resources if its URI is a template."""

    has_template_names = True

    def __init__(self, function: Callable[P, R], options: ResourceOptions, uri: str) -> None:
        """Read the function and its URI; `decorators.resource` explains the options."""
        ttl_ms, cache_scope = options.pop("ttl_ms", 0), options.pop("cache_scope", "private")
        size = options.pop("size", None)
        _check(uri, ttl_ms, cache_scope, size)
        super().__init__(function, options)
        self.uri = uri
        self.mime_type = options.pop("mime_type", None)
        self._cache = {"ttlMs": ttl_ms, "cacheScope": cache_scope}
        variables = set(uri_templates.list_variables(uri))
        self._check_variables(variables)
        self.kind = "resource_template" if variables else "resource"
        self._entry |= {"uriTemplate" if variables else "uri": uri, "mimeType": self.mime_type}
        self._read_annotations(options.pop("annotations", None))
        if not variables:
            self._entry["size"] = size  # a template of the specification has no size

    def _check_variables(self, variables: set[str]) -> None:
        names = {*self.arguments.by_name}
        if names != variables:
            message = f"its parameters before * must be the variables of {self.uri!r}: {sorted(variables)}"
            message += f", not {sorted(names)}"
            raise TypeError(message)

    @property
    def key(self) -> str:
        """The URI by which a request names it."""
        return self.uri

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the variables of the template from the URI of a `resources/read`."""
        return self.arguments.bind(uri_templates.match(self.uri, params["uri"]) or {}, values_are_text=True)

    def result(self, value: object, params: Mapping[str, Any]) -> dict[str, Any]:
        """Write a ReadResourceResult."""
        return {"contents": results.read_resource_contents(value, params["uri"], self.mime_type), **self._cache}
