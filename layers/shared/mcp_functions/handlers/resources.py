"""A resource, or a family of them named by a URI template: a function that reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.completion import CompletableHandler
from mcp_functions.protocol import results, uri_templates
from mcp_functions.schemas import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.signatures import Signature
    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.wire_types import Annotations
    from mcp_functions.rounds.round import Round

CacheScope: TypeAlias = Literal["public", "private"]

# RFC 3986: a scheme, a colon, and no blanks or control characters; what stands in braces is a variable
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
    """A function that reads one resource."""

    kind = "resource"

    def __init__(  # noqa: PLR0913 - each is a field of the specification's description
        self,
        function: Callable[P, R],
        uri: str,
        *,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Model | None = None,
        ttl_ms: int = 0,
        cache_scope: CacheScope = "private",
        **options: Any,  # noqa: ANN401 - checked by Handler
    ) -> None:
        """Take the function and its URI.

        Args:
            function: what reads the resource.
            uri: the URI, or URI template, that names it.
            mime_type: of what it holds.
            size: in bytes, if it is known.
            annotations: hints about who should use it.
            ttl_ms: milliseconds for which a client may keep what it read.
            cache_scope: "private", or "public" where every caller reads the same.
            options: what every handler has.

        """
        _check(uri, ttl_ms, cache_scope, size)
        self.uri = uri
        self.mime_type = mime_type
        self.cache = {"ttlMs": ttl_ms, "cacheScope": cache_scope}
        self._more: dict[str, Any] = {"mimeType": mime_type, "size": size, "annotations": annotations}
        super().__init__(function, **options)

    def _check_options(self) -> None:
        super()._check_options()
        if self._more["annotations"] is not None:
            from mcp_functions.protocol import hints  # noqa: PLC0415 - many resources have none

            self._more["annotations"] = hints.read_annotations(self._more["annotations"])

    @property
    def key(self) -> str:
        """What a request names it by."""
        return self.uri

    def _fields(self) -> dict[str, Any]:
        return {"uri": self.uri, **self._more}

    def _read_signature(self, signature: Signature) -> None:
        self.arguments = arguments.read(signature.sent, signature.hints, camel_case=False)  # the template's own words
        has, needs = {argument.wire for argument in self.arguments.every}, set(self._variables())
        if has != needs:
            message = (
                f"its parameters before * must be the variables of {self.uri!r}: {sorted(needs)}, not {sorted(has)}"
            )
            raise TypeError(message)

    def _variables(self) -> tuple[str, ...]:
        return ()

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a `resources/read` (server/resources).

        Raises:
            InvalidArguments: a variable of the URI does not fit.
            InputRequired: the round ends with a question.

        """
        uri = params["uri"]
        value = self._answered(self.matches(uri) or {}, round_)
        return {"contents": results.read_resource_contents(value, uri, self.mime_type), **self.cache}


class ResourceTemplate(Resource[P, R]):
    """A function that reads a family of resources, named by a URI template."""

    kind = "resource_template"

    def _fields(self) -> dict[str, Any]:
        return {"uriTemplate": self.uri, **self._more}

    def _variables(self) -> tuple[str, ...]:
        return uri_templates.variables(self.uri)

    def matches(self, key: str) -> dict[str, str] | None:
        """Read the variables of its template out of a URI; None if it names another resource."""
        return uri_templates.match(self.uri, key)
