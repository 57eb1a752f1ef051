"""Tool, Prompt, Resource, ResourceTemplate: an author's function, its description, and how a request calls it.

The signature is the contract. Before `*` stands what the client sends (and the schema says so); after it, what the
function may do: a handler without `elicit` can never ask, which its Lambda's permissions show. Decorating leaves the
function callable as it was.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, get_type_hints

from mcp_functions import headers, results, uris
from mcp_functions.arguments import InvalidArgument, read, read_raw
from mcp_functions.asking import NotAnswered
from mcp_functions.errors import DeveloperError, InvalidArguments, InvalidParams, ToolError, Unanswered
from mcp_functions.input_requests import InputRequiredResult
from mcp_functions.reporting import Log
from mcp_functions.signatures import declared, injected, returned, where

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.arguments import Arguments, RawArguments
    from mcp_functions.rounds import Round
    from mcp_functions.schema import Icon, ToolAnnotations

P = ParamSpec("P")
R = TypeVar("R")

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
MAX_COMPLETIONS = 100  # "values: … Must not exceed 100 items"


class Handler(Generic[P, R]):
    """One function that a client can call, and what the client is told about it.

    Attributes:
        name: what the client calls it.
        asks: whether it can end a round with a question, so that its Lambda must be able to seal.
        answer_within: seconds a person may take for one answer.
        max_sheds: rounds in a row that may end without a question, because the time was up.

    """

    kind: ClassVar[str]

    def __init__(  # noqa: PLR0913 - each is a field of the specification's description
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Mapping[str, Any] | None = None,
        camel_case: bool = False,
        answer_within: int = 600,
        max_sheds: int = 2,
    ) -> None:
        """Read the function's signature and docstring; nothing is called.

        Raises:
            TypeError: the signature breaks the contract; the message says where and how to mend it.

        """
        _check_plain(function)
        update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self.title = title
        self.description = description or inspect.getdoc(function)
        # "between 1 and 128 characters … A-Z, a-z, 0-9, underscore, hyphen and dot", for a header carries it
        if not NAME.fullmatch(self.name):
            message = f"the name {self.name!r} must be 1 to 128 of A-Z a-z 0-9 _ - ."
            raise TypeError(message)
        if answer_within < 1 or max_sheds < 0:
            message = "answer_within is in seconds, 1 or more; max_sheds is 0 or more"
            raise TypeError(message)
        self.camel_case = camel_case
        self.answer_within = answer_within
        self.max_sheds = max_sheds
        self._extra = {"icons": list(icons) if icons else None, "_meta": dict(meta) if meta else None}
        with where(function):
            hints = get_type_hints(function, include_extras=True)
            parameters = list(inspect.signature(function).parameters.values())
            self._capabilities = injected(parameters, hints)
            self._declared = declared(parameters, hints, camel_case=camel_case)
            sent = [parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
            self._defaults = {parameter.name: parameter.default for parameter in sent}
            self._read_arguments(sent, hints)
            self._read_return(hints.get("return"))
        self.asks = bool(self._declared) or any(capability.asks for capability, _ in self._capabilities.values())
        self.logs = any(capability is Log for capability, _args in self._capabilities.values())

    def _read_arguments(self, sent: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        self.arguments = read(sent, hints, camel_case=self.camel_case)

    def _read_return(self, annotation: Any) -> None:  # noqa: ANN401 - an annotation is any value
        pass

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function directly, as a unit test does."""
        return self.function(*args, **kwargs)

    @property
    def key(self) -> str:
        """What a request names it by."""
        return self.name

    def matches(self, key: str) -> dict[str, str] | None:
        """Read the variables out of what a request names; None if it names another handler."""
        return {} if key == self.key else None

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a request."""
        raise NotImplementedError

    def failed(self, reason: str) -> dict[str, Any]:
        """Say that the request cannot be completed.

        Raises:
            Unanswered: there is no result that could say so.

        """
        raise Unanswered(reason)

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind."""
        fields = {"title": self.title, "description": self.description, **self._fields(), **self._extra}
        return {"name": self.name, **{key: value for key, value in fields.items() if value is not None}}

    def _fields(self) -> dict[str, Any]:
        return {}

    def _run(self, arguments: Mapping[str, Any], round_: Round) -> Any:  # noqa: ANN401 - what the function returns
        answers = self._ask_declared(arguments, round_) if self._declared else {}
        made = {name: capability.of(round_, args) for name, (capability, args) in self._capabilities.items()}
        value: Any = self.function(**arguments, **answers, **made)  # type: ignore[arg-type, call-arg]  # read at decoration
        if inspect.iscoroutine(value):
            import asyncio  # noqa: PLC0415 - not for those who write def

            value = asyncio.run(value)
        if isinstance(value, InputRequiredResult):
            if not self.asks:
                message = f"{self.name} returned an InputRequiredResult; to ask, it takes an InputResponses after *"
                raise DeveloperError(message)
            round_.require(value)
        return value

    def _ask_declared(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        known = {**self._defaults, **arguments}
        questions = [
            replace(declared.question, message=declared.question.message.format(**known)) for declared in self._declared
        ]
        askings = [question.asking(camel_case=self.camel_case) for question in questions]
        optional = [
            asking._replace(read=_or_none(asking.read)) if declared.optional else asking
            for asking, declared in zip(askings, self._declared, strict=True)
        ]
        return dict(zip((declared.parameter for declared in self._declared), round_.ask(*optional), strict=True))


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def optional(response: Any) -> Any:  # noqa: ANN401 - a response; an answer
        try:
            return read(response)
        except NotAnswered:
            return None

    return optional


def _check_plain(function: object) -> None:
    if not inspect.isfunction(function):
        message = f"{function!r}: a handler is a function, written with def"
        raise TypeError(message)


class Tool(Handler[P, R]):
    """A function that a model calls."""

    kind = "tool"

    def __init__(
        self,
        function: Callable[P, R],
        *,
        annotations: ToolAnnotations | None = None,
        input_schema: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - checked by Handler
    ) -> None:
        """Take the function and, besides what every handler has, hints about what it does and a schema of one's own."""
        self._annotations = annotations
        self._input_schema = input_schema
        super().__init__(function, **options)

    def _read_arguments(self, sent: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        if self._input_schema is None:
            self._accepts: Arguments | RawArguments = read(sent, hints, camel_case=self.camel_case)
        else:
            self._accepts = read_raw(sent, self._input_schema)
        headers.declared(self._accepts.schema)  # "clients MUST reject a tool definition" that breaks these rules

    def _read_return(self, annotation: Any) -> None:  # noqa: ANN401 - an annotation is any value
        self._output = returned(annotation)

    def _fields(self) -> dict[str, Any]:
        return {
            "inputSchema": self._accepts.schema,
            "outputSchema": self._output.schema if self._output else None,
            "annotations": self._annotations,
        }

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a `tools/call` (server/tools).

        "Tool execution errors", arguments that do not fit among them, are results that the model can read and act on.

        Raises:
            InputRequired: the round ends with a question.
            DeveloperError: the function broke a rule, or returned what it did not promise.

        """
        try:
            value = self._run(self._accepts.bind(params.get("arguments") or {}), round_)
        except (InvalidArgument, ToolError, NotAnswered) as error:
            return self.failed(str(error))
        result = results.call_tool_result(value)
        if self._output and not result.get("isError"):
            self._check_output(result)
        return result

    def failed(self, reason: str) -> dict[str, Any]:
        """Say that the tool failed, to the model."""
        return results.tool_error(reason)

    def _check_output(self, result: Mapping[str, Any]) -> None:
        # If there is an output schema, "servers MUST provide structured results that conform to this schema".
        if "structuredContent" not in result or self._output is None:
            message = f"{self.name} promises structured content in its signature and returned none"
            raise DeveloperError(message)
        try:
            self._output.check(result["structuredContent"])
        except ValueError as error:
            message = f"{self.name} returned something else than its signature promises: it {error}"
            raise DeveloperError(message) from None


class Completing(Handler[P, R]):
    """What prompts and resource templates have in common: their arguments are text, and can be completed."""

    def __init__(self, function: Callable[P, R], **options: Any) -> None:  # noqa: ANN401 - checked by Handler
        """Take the function; completers are added by `complete`."""
        self._completers: dict[str, Callable[[str, Mapping[str, str]], Sequence[str]]] = {}
        super().__init__(function, **options)

    @property
    def completes(self) -> list[str]:
        """The arguments that have a completer."""
        return sorted(self._completers)

    def complete(
        self, argument: str
    ) -> Callable[
        [Callable[[str, Mapping[str, str]], Sequence[str]]], Callable[[str, Mapping[str, str]], Sequence[str]]
    ]:
        """Decorate the function that completes one argument: `(value, arguments) -> list of values, the best first`.

        Args:
            argument: its wire name.

        Raises:
            TypeError: there is no such argument.

        """
        known = [found.wire for found in self.arguments.every]
        if argument not in known:
            message = f"{self.name} has no argument {argument!r} to complete; it has: {', '.join(known) or 'none'}"
            raise TypeError(message)

        def remember(
            completer: Callable[[str, Mapping[str, str]], Sequence[str]],
        ) -> Callable[[str, Mapping[str, str]], Sequence[str]]:
            self._completers[argument] = completer
            return completer

        return remember

    def completion(self, argument: str, value: str, known: Mapping[str, str]) -> dict[str, Any]:
        """Complete one argument (server/utilities/completion).

        Raises:
            InvalidParams: there is no such argument.

        """
        if argument not in [found.wire for found in self.arguments.every]:
            message = "params.argument.name names no argument of this reference"
            raise InvalidParams(message)
        completer = self._completers.get(argument)
        values = [str(found) for found in completer(value, known)] if completer else []
        more = len(values) > MAX_COMPLETIONS
        return {"completion": {"values": values[:MAX_COMPLETIONS], "total": len(values), "hasMore": more}}

    def _answered(self, arguments: Mapping[str, Any], round_: Round) -> Any:  # noqa: ANN401 - what the function returns
        try:
            return self._run(self.arguments.bind(arguments, text=True), round_)
        except InvalidArgument as error:
            raise InvalidArguments(str(error)) from None
        except (ToolError, NotAnswered) as error:
            raise Unanswered(str(error)) from None


class Prompt(Completing[P, R]):
    """A function that writes messages for a model."""

    kind = "prompt"

    def _fields(self) -> dict[str, Any]:
        listed = [
            {
                "name": argument.wire,
                **({"description": argument.kind.description} if argument.kind.description else {}),
                "required": argument.required,
            }
            for argument in self.arguments.every
        ]
        return {"arguments": listed or None}

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a `prompts/get` (server/prompts).

        Raises:
            InvalidArguments: an argument is missing or does not fit.
            InputRequired: the round ends with a question.

        """
        value = self._answered(params.get("arguments") or {}, round_)
        return results.get_prompt_result(value, self.description)


class Resource(Completing[P, R]):
    """A function that reads one resource."""

    kind = "resource"

    def __init__(  # noqa: PLR0913 - each is a field of the specification's description
        self,
        function: Callable[P, R],
        uri: str,
        *,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Mapping[str, Any] | None = None,
        ttl_ms: int = 0,
        cache_scope: str = "private",
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
        self.uri = uri
        self.mime_type = mime_type
        self.cache = {"ttlMs": ttl_ms, "cacheScope": cache_scope}
        self._more = {"mimeType": mime_type, "size": size, "annotations": annotations}
        super().__init__(function, **options)

    @property
    def key(self) -> str:
        """What a request names it by."""
        return self.uri

    def _fields(self) -> dict[str, Any]:
        return {"uri": self.uri, **self._more}

    def _read_arguments(self, sent: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        self.arguments = read(sent, hints, camel_case=False)  # the template's own words
        has, needs = {argument.parameter for argument in self.arguments.every}, set(self._variables())
        if has != needs:
            message = (
                f"its parameters before * must be the variables of {self.uri!r}: {sorted(needs)}, not {sorted(has)}"
            )
            raise TypeError(message)

    def _variables(self) -> tuple[str, ...]:
        return ()

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
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
        return uris.variables(self.uri)

    def matches(self, key: str) -> dict[str, str] | None:
        """Read the variables of its template out of a URI; None if it names another resource."""
        return uris.match(self.uri, key)
