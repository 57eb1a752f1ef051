"""What a signature says besides its arguments: what the function may do, what is asked first, what it promises."""

from __future__ import annotations

import types
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin

from mcp_functions.asking import Ask, Elicit, ListRoots, Question, Sample
from mcp_functions.errors import DeveloperError
from mcp_functions.input_requests import InputRequiredResult
from mcp_functions.kinds import Kind, camel, kind
from mcp_functions.low_level import InputResponses, RequestState
from mcp_functions.reporting import Log, Progress
from mcp_functions.steps import Step

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcp_functions.capabilities import Capability

CAPABILITIES: tuple[type[Capability], ...] = (
    Elicit,
    Step,
    Sample,
    ListRoots,
    InputResponses,
    RequestState,
    Progress,
    Log,
)


class Declared(NamedTuple):
    """A question that stands in a signature: the parameter that gets the answer, and whether that may be None."""

    parameter: str
    question: Question[Any]
    optional: bool


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


def injected(
    parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any]
) -> dict[str, tuple[type[Capability], tuple[Any, ...]]]:
    """Read what the function may do: parameter to capability, and what stands in its brackets.

    Raises:
        TypeError: a capability stands before `*`, something else after it, or both levels of asking are mixed.

    """
    found: dict[str, tuple[type[Capability], tuple[Any, ...]]] = {}
    for parameter in parameters:
        hint = hints.get(parameter.name)
        capability: Any = get_origin(hint) or hint
        after = parameter.kind is parameter.KEYWORD_ONLY
        if capability in CAPABILITIES and not after:
            message = f"{parameter}: what the function may do stands after *, as in (…, *, {parameter})"
            raise TypeError(message)
        if after and not _ask(hint):
            if capability not in CAPABILITIES:
                _refuse(parameter)
            found[parameter.name] = (capability, get_args(hint))
    _check_levels(found)
    return found


def declared(
    parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any], *, camel_case: bool
) -> tuple[Declared, ...]:
    """Read the questions that stand in a signature, `Annotated[Model, Ask("…")]`, by the names of their parameters.

    Raises:
        TypeError: one stands before `*`, or its type is no form.
        DeveloperError: its form cannot be expressed.

    """
    found = []
    for parameter in parameters:
        hint = hints.get(parameter.name)
        if ask := _ask(hint):
            if parameter.kind is not parameter.KEYWORD_ONLY:
                message = f"{parameter.name}: what is asked of the user stands after *"
                raise TypeError(message)
            forms_ = [member for member in _members(get_args(hint)[0]) if member is not type(None)]
            key = camel(parameter.name) if camel_case else parameter.name
            _check_message(parameter.name, ask.message, parameters)
            question = Question(key, ask.message, forms_[0])
            question.asking(camel_case=camel_case)  # refuses a form that no client could show
            found.append(Declared(parameter.name, question, optional=len(forms_) < len(_members(get_args(hint)[0]))))
    return tuple(found)


def _check_message(name: str, message: str, parameters: Sequence[inspect.Parameter]) -> None:
    arguments = {parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY}
    named = {field for _text, field, _spec, _conversion in Formatter().parse(message) if field is not None}
    if unknown := sorted(named - arguments):
        text = f"{name}: the message names {{{unknown[0]}}}, which is none of the arguments ({{{{ writes a brace)"
        raise TypeError(text)


def _ask(hint: Any) -> Ask | None:  # noqa: ANN401 - an annotation is any value
    return next((item for item in get_args(hint) if isinstance(item, Ask)), None) if get_args(hint) else None


def returned(annotation: Any) -> Kind | None:  # noqa: ANN401 - an annotation is any value
    """Read what a tool promises to return as structured content; None for text, content, or nothing.

    Raises:
        TypeError: it is nothing that JSON can carry.

    """
    members = [member for member in _members(annotation) if member is not InputRequiredResult]
    if (
        not members
        or annotation is None
        or any(member in (str, type(None)) or _is_content(member) for member in members)
    ):
        return None
    if len(members) == len(_members(annotation)):
        return kind(annotation)
    promised = members[0]
    for member in members[1:]:
        promised = promised | member
    return kind(promised)


def _refuse(parameter: inspect.Parameter) -> None:
    names = ", ".join(capability.__name__ for capability in CAPABILITIES)
    message = f"{parameter}: after * stands what the function may do ({names}); what the client sends stands before it"
    raise TypeError(message)


def _check_levels(found: Mapping[str, tuple[type[Capability], tuple[Any, ...]]]) -> None:
    levels = {capability.low_level for capability, _args in found.values() if capability.asks}
    if len(levels) > 1:
        message = (
            "InputResponses and RequestState are the low level: a function that uses them does not ask inline as well"
        )
        raise TypeError(message)
    for name, (capability, args) in found.items():
        if capability is RequestState:
            if not args:
                message = f"{name}: RequestState needs its model in brackets, as in RequestState[Draft]"
                raise TypeError(message)
            _check_defaults(name, args[0])


def _check_defaults(name: str, model: Any) -> None:  # noqa: ANN401 - a pydantic model
    try:
        model()
    except ValueError:
        message = f"{name}: the first round begins with an empty {model.__name__}, so every field needs a default"
        raise TypeError(message) from None


def _members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - an annotation is any value
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _is_unstructured(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    return annotation in (str, type(None)) or _is_content(annotation)


def _is_content(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    if hasattr(annotation, "wire") or hasattr(annotation, "wire_result"):
        return True
    return any(_is_content(member) for member in get_args(annotation))
