"""Reads the parameters after `*` from a signature: capabilities and questions.

A parameter is a question if its annotation holds an `Ask`, as `Annotated[Form, Ask("…")]`. Any other parameter after
`*` is a capability, which its type names. An error in a signature is found here, before the first request.

A function without such parameters does not load this module.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from mcp_functions.handlers.injection import DeclaredCapability, DeclaredQuestion, DeclaredValue, Injection
from mcp_functions.handlers.return_types import union_members
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.capabilities import Ask, Capability, Shared
from mcp_functions.schemas.parameters import MISSING, to_camel_case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.schemas.parameters import Parameter

T = TypeVar("T")
CAPABILITIES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"
ESCAPED_BRACE = "{{"


def read_injection(parameters: Sequence[Parameter], hints: Mapping[str, Any], *, camel_case: bool) -> Injection:
    """Read the capabilities and questions of a signature.

    Args:
        parameters: all parameters of the function, on both sides of `*`.
        hints: the annotation of each parameter.
        camel_case: True if names are camelCase on the wire.

    Raises:
        TypeError: an argument is after `*`, a function asks inline and at the low level, or a form is not possible.
    """
    arguments = [parameter for parameter in parameters if not parameter.keyword_only]
    defaults = {argument.name: argument.default for argument in arguments if argument.default is not MISSING}
    capabilities: list[DeclaredCapability] = []
    questions: list[DeclaredQuestion] = []
    shared: list[DeclaredValue] = []
    for parameter in parameters:
        if not parameter.keyword_only:
            continue
        hint = hints.get(parameter.name)
        ask, opened = _find(hint, Ask), _find(hint, Shared)
        if opened is not None:
            shared.append(_read_shared(parameter.name, opened))
        elif ask is None:
            capabilities.append(_read_capability(parameter.name, hint))
        else:
            _check_message(parameter.name, ask.message, {argument.name for argument in arguments})
            questions.append(_read_question(parameter.name, hint, ask, camel_case=camel_case))
    _check_capabilities(capabilities)
    return Injection(tuple(capabilities), tuple(questions), defaults, camel_case, tuple(shared))


def check_arguments(parameters: Sequence[Parameter], hints: Mapping[str, Any]) -> None:
    """Refuse a capability, a question or a shared value before `*`, with a TypeError."""
    for name in [parameter.name for parameter in parameters if not parameter.keyword_only]:
        hint = hints.get(name)
        if _find_capability(hint):
            message = f"{name}: a capability is a parameter after *, as in (…, *, {name})"
            raise TypeError(message)
        if _find(hint, Ask):
            message = f"{name}: a question to the user is a parameter after *"
            raise TypeError(message)
        if _find(hint, Shared):
            message = f"{name}: what calls share is a parameter after *"
            raise TypeError(message)


def _read_capability(name: str, hint: object) -> DeclaredCapability:
    capability = _find_capability(hint)
    if capability is None:
        rule = f"after * a function takes capabilities ({CAPABILITIES}); what the client sends is before *"
        message = f"{name}: {rule}"
        raise TypeError(message)
    return DeclaredCapability(name, capability, get_args(hint))


def _read_shared(name: str, shared: Shared) -> DeclaredValue:
    from mcp_functions.handlers.shared_values import shared_value  # noqa: PLC0415 - few functions share something

    if not callable(shared.enter):
        message = f"{name}: Shared takes a function that returns a context manager: Shared(open_database)"
        raise TypeError(message)
    return DeclaredValue(name, shared_value(shared.enter))


def _check_capabilities(declared: Sequence[DeclaredCapability]) -> None:
    asking = [each.capability for each in declared if each.capability.needs_state]
    asks_low_level = any(capability.low_level for capability in asking)
    asks_inline = any(not capability.low_level for capability in asking)
    if asks_low_level and asks_inline:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)
    for each in declared:
        each.capability.check(each.parameter, each.types)


def _check_message(name: str, message: str, arguments: set[str]) -> None:
    """Refuse a message with a `{name}` that is not the name of an argument."""
    fields = {field for _text, field, _spec, _conversion in Formatter().parse(message) if field is not None}
    unknown = sorted(fields - arguments)
    if unknown:
        field = "{" + unknown[0] + "}"
        text = f"{name}: the message names {field}, which is none of the arguments ({ESCAPED_BRACE} writes a brace)"
        raise TypeError(text)


def _read_question(name: str, hint: object, ask: Ask, *, camel_case: bool) -> DeclaredQuestion:
    from mcp_functions.rounds.elicitation import Question  # noqa: PLC0415 - few functions declare a question

    annotation, *metadata = get_args(hint)
    metadata.remove(ask)
    members = union_members(annotation)
    form_members = tuple(member for member in members if member is not type(None))
    form: Any = Union.__getitem__(form_members)  # `Union[…]` is for members that a type checker knows
    if metadata:
        form = Annotated[(form, *metadata)]
    key = to_camel_case(name) if camel_case else name
    question: Question[Any] = Question(key, ask.message, form)
    try:
        question.to_wire(camel_case=camel_case)
    except DeveloperError as error:  # no client could show the form
        message = f"parameter {name!r}: {error}"
        raise TypeError(message) from error
    return DeclaredQuestion(name, question, is_optional=form_members != members)


def _find_capability(hint: object) -> type[Capability] | None:
    """Return the capability that an annotation names, with or without brackets; None if it names none."""
    annotation = get_origin(hint) or hint
    return annotation if isinstance(annotation, type) and issubclass(annotation, Capability) else None


def _find(hint: object, kind: type[T]) -> T | None:
    """Return the `Ask` or the `Shared` in an annotation; None if it has none."""
    return next((item for item in get_args(hint) if isinstance(item, kind)), None)
