"""The parameters of an author's function, and its docstring, as `inspect` would read them.

`inspect` brings the parser and the disassembler with it, a tenth of a scalar tool's cold start; a plain function says
all of this itself. Anything else, and every complaint, is still `inspect`'s. A property test says both ways agree.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

MISSING: Any = object()  # no default
VARIADIC = 0x04 | 0x08  # *args, **kwargs


class Parameter(NamedTuple):
    """One parameter: `keyword_only` by its name alone; `plain` also by its place; neither of these if it is neither.

    Attributes:
        is_filled: whether a call must be given its value, because its default is not what the function has after `=`.
        fresh: makes the default for one call, if it is filled and has one.
        alias: its name on the wire, if `Field` gives one.
        title: its title for people, if `Field` gives one.

    """

    name: str
    annotation: object = MISSING
    default: Any = MISSING
    keyword_only: bool = False
    plain: bool = True
    shown: str = ""
    is_filled: bool = False
    fresh: Callable[[], Any] | None = None
    alias: str | None = None
    title: str | None = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING and self.fresh is None

    def __str__(self) -> str:
        """Write it as its author did, for a complaint."""
        if self.shown:
            return self.shown
        from inspect import Parameter as Shown  # noqa: PLC0415 - only to complain

        default, hint = (Shown.empty if said is MISSING else said for said in (self.default, self.annotation))
        return str(Shown(self.name, Shown.KEYWORD_ONLY, default=default, annotation=hint))


def read(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Read the parameters of a function, in order."""
    code: CodeType = function.__code__
    wrapped = hasattr(function, "__wrapped__") or hasattr(function, "__signature__")
    if wrapped or code.co_posonlyargcount or code.co_flags & VARIADIC:
        return _inspected(function)
    either = code.co_argcount
    names = code.co_varnames[: either + code.co_kwonlyargcount]
    last = function.__defaults__ or ()
    defaults = {
        **dict(zip(names[either - len(last) : either], last, strict=True)),
        **(function.__kwdefaults__ or {}),
    }
    hints = function.__annotations__
    return tuple(
        Parameter(
            name,
            hints.get(name, MISSING),
            defaults.get(name, MISSING),
            keyword_only=place >= either,
            plain=place < either,
        )
        for place, name in enumerate(names)
    )


def docstring(function: Callable[..., Any]) -> str | None:
    """Return a function's docstring without the indentation of its source."""
    if function.__doc__ is None:
        return None
    first, *rest = function.__doc__.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip(" ")) for line in rest if line.strip(" ")), default=0)
    lines = [first.lstrip(" "), *(line[margin:] for line in rest)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines)


def copier(default: Any) -> Callable[[], Any] | None:  # noqa: ANN401 - a default is any value
    """Return a function that copies a default for each call, or None for a default that no call can change.

    Raises:
        TypeError: the default can be changed and cannot be copied.

    """
    if _is_hashable(default) and not any(hasattr(default, name) for name in ("__dataclass_fields__", "model_fields")):
        return None
    from copy import deepcopy  # noqa: PLC0415 - few defaults can be changed

    try:
        deepcopy(default)
    except Exception as error:
        message = f"its default cannot be copied for each call: {error}"
        raise TypeError(message) from error
    return partial(deepcopy, default)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _inspected(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    import inspect  # noqa: PLC0415 - see above

    return tuple(
        Parameter(
            found.name,
            default=MISSING if found.default is found.empty else found.default,
            keyword_only=found.kind is found.KEYWORD_ONLY,
            plain=found.kind is found.POSITIONAL_OR_KEYWORD,
            shown=str(found),
        )
        for found in inspect.signature(function).parameters.values()
    )
