"""What an author's signature says: what the client sends, what the function may do, what is asked, what it promises.

Before `*` stands what the client sends. After it stand capabilities, by their types, and questions (`Annotated[Form,
Ask("…")]`). Whatever is wrong is said where the function is decorated, with its file and line.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Iterable, MutableSequence, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.schemas.parameters import Parameter, read_parameter, to_camel_case
from mcp_functions.schemas.type_reader import read_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.rounds.capabilities import Capability
    from mcp_functions.rounds.elicitation import Ask, Question
    from mcp_functions.rounds.round import Round, WireQuestion
    from mcp_functions.schemas.json_types import JsonType

LISTS = (list, tuple, Sequence, MutableSequence, Collection, Iterable)

# What may stand after `*`, known by its home and name: importing them all would cost a function those it does not use.
CAPABILITIES = (
    "rounds.elicitation.Elicit",
    "rounds.steps.Step",
    "rounds.elicitation.Sample",
    "rounds.elicitation.ListRoots",
    "rounds.input_responses.InputResponses",
    "rounds.input_responses.RequestState",
    "rounds.notifications.Progress",
    "rounds.notifications.Log",
    "rounds.capabilities.Caller",
)


class Declared(NamedTuple):
    """A question that stands in a signature: the parameter that gets the answer, and whether that may be None."""

    parameter: str
    question: Question[Any]
    optional: bool

    def to_wire(self, arguments: Mapping[str, Any], *, camel_case: bool) -> WireQuestion:
        """Say what to ask, with the arguments in the message."""
        message = self.question.message.format(**arguments)
        wire = type(self.question)(self.question.key, message, self.question.form).to_wire(camel_case=camel_case)
        return wire._replace(read=_or_none(wire.read)) if self.optional else wire


class Signature(NamedTuple):
    """A signature, read.

    Attributes:
        sent: the parameters that the client sends.
        hints: the type of each parameter.
        capabilities: parameter to capability, and what stands in its brackets.
        declared: the questions that are asked before the function runs.
        returns: what a tool promises as structured content; None for text, content, or nothing.

    """

    sent: tuple[Parameter, ...]
    hints: Mapping[str, Any]
    capabilities: Mapping[str, tuple[type[Capability], tuple[Any, ...]]]
    declared: tuple[Declared, ...]
    returns: JsonType | None

    @property
    def asks(self) -> bool:
        """Whether the function can end a round with a question."""
        return bool(self.declared) or any(capability.asks for capability, _args in self.capabilities.values())

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages."""
        return any(_word(capability) == "rounds.notifications.Log" for capability, _args in self.capabilities.values())

    def make(self, round_: Round) -> dict[str, Capability]:
        """Make the function's capabilities for one round."""
        return {name: capability.of(round_, args) for name, (capability, args) in self.capabilities.items()}

    def fill(self, given: int, named: Mapping[str, Any]) -> dict[str, Any]:
        """Make the defaults that a direct call needs, because they are not what stands after `=`.

        Args:
            given: how many arguments the caller gave by their place.
            named: those that it gave by their names.

        Raises:
            TypeError: `Field` has no default for a parameter that was not given.

        """
        absent = [
            parameter for parameter in self.sent[given:] if parameter.replaces_default and parameter.name not in named
        ]
        if missing := [parameter.name for parameter in absent if parameter.required]:
            message = f"missing required argument: {missing[0]!r}"
            raise TypeError(message)
        return {parameter.name: parameter.make_default() for parameter in absent if parameter.make_default}

    def ask(self, arguments: Mapping[str, Any], round_: Round, *, camel_case: bool) -> dict[str, Any]:
        """Ask what the signature declares, all of it together.

        Raises:
            InputRequired: something of it has no answer yet.

        """
        if not self.declared:
            return {}
        known = {**{parameter.name: parameter.default for parameter in self.sent}, **arguments}
        answers = round_.ask(*(question.to_wire(known, camel_case=camel_case) for question in self.declared))
        return dict(zip((question.parameter for question in self.declared), answers, strict=True))


class where:  # noqa: N801 - a context manager that reads as a word
    """Puts the author's file, line and function before whatever is wrong with a signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Remember where the function stands."""
        code = function.__code__
        self._where = f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}()"

    def __enter__(self) -> None:
        """Begin to read the signature."""

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        """Name the place, if something is wrong.

        Raises:
            TypeError: it is.

        """
        if isinstance(error, TypeError | ValueError | NameError | DeveloperError):
            message = f"{self._where}: {error}"
            raise TypeError(message) from error


def read(function: Callable[..., Any], *, camel_case: bool) -> Signature:
    """Read a function's signature.

    Args:
        function: an author's function; it is not called.
        camel_case: whether names go to the wire in camelCase.

    Raises:
        TypeError: something stands on the wrong side of `*`, both levels of asking are mixed, or a type cannot be told.
        DeveloperError: a declared form cannot be expressed.

    """
    hints = _hints(function)
    parameters = tuple(inspect.signature(function).parameters.values())
    sent = tuple(_with_default(parameter, hints) for parameter in parameters if not _stands_after(parameter))
    return Signature(
        sent=sent,
        hints=hints,
        capabilities=_capabilities(parameters, hints),
        declared=_declared(parameters, hints, camel_case=camel_case),
        returns=_returns(hints.get("return")),
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        message = f"{_culprit(function)}: {error}"
        raise TypeError(message) from error


def _culprit(function: Callable[..., Any]) -> str:
    """Name the parameter whose annotation cannot be read, or the result."""
    for name, annotation in function.__annotations__.items():
        try:
            get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), function.__globals__)
        except (NameError, TypeError, SyntaxError, AttributeError):
            return "the result" if name == "return" else f"parameter {name!r}"
    return "a parameter"


def _stands_after(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY


def _with_default(parameter: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    """Read a parameter's default; its hint keeps the type alone."""
    if parameter.name not in hints:
        return Parameter(parameter, parameter.default)
    try:
        filled, hints[parameter.name] = read_parameter(parameter, hints[parameter.name])
    except (TypeError, ValueError) as error:
        message = f"parameter {parameter.name!r}: {error}"
        raise TypeError(message) from error
    return filled


def _capabilities(
    parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> dict[str, tuple[type[Capability], tuple[Any, ...]]]:
    found: dict[str, tuple[type[Capability], tuple[Any, ...]]] = {}
    for parameter in parameters:
        hint = hints.get(parameter.name)
        capability: Any = get_origin(hint) or hint
        after = _stands_after(parameter)
        if not after and _word(capability) in CAPABILITIES:
            message = f"{parameter}: what the function may do stands after *, as in (…, *, {parameter})"
            raise TypeError(message)
        if after and not _marker(hint):
            if _word(capability) not in CAPABILITIES:
                _refuse(parameter)
            found[parameter.name] = (capability, get_args(hint))
    _check_levels(found)
    return found


def _refuse(parameter: inspect.Parameter) -> None:
    names = ", ".join(word.rpartition(".")[2] for word in CAPABILITIES)
    message = f"{parameter}: after * stands what the function may do ({names}); what the client sends stands before it"
    raise TypeError(message)


def _check_levels(found: Mapping[str, tuple[type[Capability], tuple[Any, ...]]]) -> None:
    levels = {capability.low_level for capability, _args in found.values() if capability.asks}
    if len(levels) > 1:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)
    for name, (capability, args) in found.items():
        if _word(capability) == "rounds.input_responses.RequestState":
            _check_state(name, args)


def _check_state(name: str, args: tuple[Any, ...]) -> None:
    if not args:
        message = f"{name}: RequestState needs its model in brackets, as in RequestState[Draft]"
        raise TypeError(message)
    try:
        args[0]()
    except ValueError:
        message = f"{name}: the first round begins with an empty {args[0].__name__}, so every field needs a default"
        raise TypeError(message) from None


def _declared(
    parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any], *, camel_case: bool
) -> tuple[Declared, ...]:
    asked = [(parameter, marker) for parameter in parameters if (marker := _marker(hints.get(parameter.name)))]
    found = []
    for parameter, marker in asked:
        if not _stands_after(parameter):
            message = f"{parameter.name}: what is asked of the user stands after *"
            raise TypeError(message)
        _check_message(parameter.name, marker.message, parameters)
        annotation, *metadata = get_args(hints[parameter.name])
        members = tuple(member for member in _members(annotation) if member is not type(None))
        metadata.remove(marker)
        form: Any = Union.__getitem__(members)  # of members that are only known now
        if metadata:
            form = Annotated[(form, *metadata)]
        from mcp_functions.rounds.elicitation import Question  # noqa: PLC0415 - who wrote Ask has imported it

        question: Question[Any] = Question(
            to_camel_case(parameter.name) if camel_case else parameter.name, marker.message, form
        )
        _check_form(parameter.name, question, camel_case=camel_case)
        found.append(Declared(parameter.name, question, optional=members != _members(annotation)))
    return tuple(found)


def _check_form(name: str, question: Question[Any], *, camel_case: bool) -> None:
    """Refuse a form that no client could show."""
    try:
        question.to_wire(camel_case=camel_case)
    except DeveloperError as error:
        message = f"parameter {name!r}: {error}"
        raise TypeError(message) from error


def _check_message(name: str, message: str, parameters: Sequence[inspect.Parameter]) -> None:
    sent = {parameter.name for parameter in parameters if not _stands_after(parameter)}
    named = {field for _text, field, _spec, _conversion in Formatter().parse(message) if field is not None}
    if unknown := sorted(named - sent):
        text = f"{name}: the message names {{{unknown[0]}}}, which is none of the arguments ({{{{ writes a brace)"
        raise TypeError(text)


def _marker(hint: Any) -> Ask | None:  # noqa: ANN401 - an annotation is any value
    return next((item for item in get_args(hint) if _word(type(item)) == "rounds.elicitation.Ask"), None)


def _word(annotation: Any) -> str:  # noqa: ANN401 - an annotation is any value
    """Name a class of this package by its home and name; "" if it is anything else."""
    home, _dot, module = str(getattr(annotation, "__module__", "")).partition(".")
    return f"{module}.{annotation.__qualname__}" if home == "mcp_functions" and isinstance(annotation, type) else ""


def _or_none(read_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def optional(response: Any) -> Any:  # noqa: ANN401 - a response; an answer
        try:
            return read_(response)
        except NotAnswered:
            return None

    return optional


def _returns(annotation: Any) -> JsonType | None:  # noqa: ANN401 - an annotation is any value
    members = [
        member for member in _members(annotation) if _word(member) != "rounds.input_requests.InputRequiredResult"
    ]
    if annotation is None or not members or any(map(_is_unstructured, members)):
        return None
    if len(members) == len(_members(annotation)):
        return read_type(annotation)
    return read_type(Union[tuple(members)])  # noqa: UP007 - of members that are only known now


def _members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - an annotation is any value
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _is_unstructured(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    # Any, object and a bare list promise nothing: what comes may be text, content or nothing at all
    inner = _bare(annotation)
    is_bare_list = (get_origin(inner) or inner) in (list, tuple) and not get_args(inner)
    return annotation in (str, type(None), Any, object) or is_bare_list or _holds_content(annotation)


def returns_content_lists(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    """Tell a return annotation whose lists are content: `list[Image]`, `Text | list[str | Text]`.

    Raises:
        TypeError: content stands where it cannot, such as in a dict.

    """
    lists = [member for member in _members(_bare(annotation)) if get_origin(_bare(member)) in LISTS]
    of_content = [member for member in lists if _holds_content(member)]
    for member in _members(_bare(annotation)):
        inner = get_args(_bare(member)) if member in of_content else (member,)
        if not all(map(_may_hold_content, inner)):
            message = f"-> {annotation}: content stands alone or in a list, not inside another value"
            raise TypeError(message)
    return bool(of_content) and len(of_content) == len(lists)


def _holds_content(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    annotation = _bare(annotation)
    if isinstance(annotation, type):
        return annotation.__module__ != "builtins" and _is_content(annotation)
    return get_origin(annotation) is not Literal and any(map(_holds_content, get_args(annotation)))


def _is_content(annotation: type) -> bool:
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain types do not need it

    return bool(foreign_types.role_of(annotation))


def _may_hold_content(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    """Tell content, a union of it and any type without content from, for example, a dict of content."""
    members = [_bare(member) for member in _members(_bare(annotation))]
    return all(isinstance(member, type) or not _holds_content(member) for member in members)


def _bare(annotation: Any) -> Any:  # noqa: ANN401 - an annotation is any value
    """Take what stands inside `Annotated`, or behind the name of a type alias."""
    annotation = getattr(annotation, "__value__", annotation)
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
