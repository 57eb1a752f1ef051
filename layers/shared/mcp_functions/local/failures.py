"""Describes an exception of an author's code for the author: its traceback, its line, and how to correct it.

On Lambda, neither the client nor the log gets any of this.
"""

from __future__ import annotations

import importlib
import os
import runpy
import traceback
from pathlib import Path

from mcp_functions.local.lambdas import own_variables
from mcp_functions.local.problems import first_line
from mcp_functions.observability import PACKAGE

# Frames of these files say nothing to an author: the toolkit's own, and those of the import system.
FOLDED = (PACKAGE, importlib.__file__, "<frozen ", runpy.__file__)
ENVIRON = (os.__file__, "<frozen os>", own_variables.__file__)  # a KeyError raised here is a missing variable
NO_AWS = "no AWS answers here: a test replaces this call, and for serve the function reads a variable instead"
REMEDIES = (  # a part of an error's text, and how to correct it
    ("cannot be written as JSON", "use text, numbers, booleans, lists, a dataclass or a pydantic model"),
    ("is not defined", "import it in app.py, and not under TYPE_CHECKING alone, or correct its spelling"),
    ("Could not connect to the endpoint URL", NO_AWS),
    ("security token included in the request is invalid", NO_AWS),
)
VARIABLE = "add {name} to Environment: Variables of the function in template.yaml; in a test: monkeypatch.setenv"


def whole_traceback(error: BaseException, *, debug: bool = False) -> str:
    """Return an exception's traceback, with the exceptions that caused it.

    Args:
        error: the exception.
        debug: whether to include the toolkit's own frames.
    """
    trace = traceback.TracebackException.from_exception(error)
    if not debug:
        _fold(trace)
    text = "".join(trace.format())
    remedy_text = remedy(error)
    if remedy_text:
        text += f"To mend it: {remedy_text}\n"
    return text


def _fold(trace: traceback.TracebackException) -> None:
    """Leave out the frames of the toolkit and of the import system."""
    chained: traceback.TracebackException | None = trace
    while chained is not None:
        author_frames = [frame for frame in chained.stack if not frame.filename.startswith(FOLDED)]
        chained.stack = traceback.StackSummary.from_list(author_frames)
        earlier = chained.__context__
        if earlier and all(frame.filename.startswith(FOLDED) for frame in earlier.stack):
            chained.__context__ = None  # an exception that the toolkit itself handled
        chained = chained.__cause__ or chained.__context__


def place(error: BaseException, folder: Path) -> str:
    """Return where a function's code failed, "functions/add/app.py:12"; "" if no frame is in the folder's project.

    Args:
        error: the exception.
        folder: the function's folder.
    """
    root = folder.parent.parent.resolve()
    if isinstance(error, SyntaxError) and error.filename:
        places = [(error.filename, error.lineno)]
    else:
        places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    for file, line in reversed(places):  # the last frame of the author's own code
        path = Path(file)
        if path.is_relative_to(root) and not file.startswith(PACKAGE) and "site-packages" not in path.parts:
            return f"{path.relative_to(root)}:{line}"
    return ""


def summary(error: BaseException) -> str:
    """Return an exception's type and text in one line; a syntax error's text without its place."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return first_line(error)


def remedy(error: BaseException) -> str:
    """Return how to correct a mistake that its text does not explain; "" if it does, or if the mistake is unknown."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, KeyError) and frames and frames[-1].filename in ENVIRON:
        return VARIABLE.format(name=error.args[0])
    for part, remedy_text in REMEDIES:
        if part in str(error):
            return remedy_text
    return ""
