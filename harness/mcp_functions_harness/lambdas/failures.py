"""Describes an exception for the author of a function: its traceback, its line, and how to correct it.

Only the author's terminal shows this. On Lambda neither the client nor the log gets any of it.
"""

import importlib
import os
import runpy
import sysconfig
import traceback
from pathlib import Path

from mcp_functions.observability import PACKAGE
from mcp_functions_harness.lambdas import own_variables
from mcp_functions_harness.problems import first_line

HARNESS = str(Path(__file__).parents[1])
# The starts of files whose frames say nothing to an author: the toolkit, and Python's import system.
HIDDEN_FILES = (PACKAGE, HARNESS, importlib.__file__, "<frozen ", runpy.__file__)
# The files of `os.environ`. A KeyError that they raise means a missing environment variable.
ENVIRON_FILES = (os.__file__, "<frozen os>", own_variables.__file__)
NO_AWS = "no AWS answers here: a test replaces this call, and for serve the function reads a variable instead"
REMEDIES = (  # a part of the exception's text, and how to correct the mistake
    ("cannot be written as JSON", "use text, numbers, booleans, lists, a dataclass or a pydantic model"),
    ("is not defined", "import it in app.py, and not under TYPE_CHECKING alone, or correct its spelling"),
    ("Could not connect to the endpoint URL", NO_AWS),
    ("security token included in the request is invalid", NO_AWS),
)
VARIABLE = (
    "add {name} to Environment: Variables of the function in template.yaml, or, if only a deployment knows its value, "
    "set it in your shell; in a test: monkeypatch.setenv"
)
LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


def whole_traceback(error: BaseException, *, debug: bool = False) -> str:
    """Return an exception's traceback, with those that caused it; with `debug`, also the toolkit's own frames."""
    trace = traceback.TracebackException.from_exception(error)
    if not debug:
        _hide_toolkit_frames(trace)
    text = "".join(trace.format())
    remedy_text = remedy(error)
    if remedy_text:
        text += f"To mend it: {remedy_text}\n"
    return text


def _hide_toolkit_frames(trace: traceback.TracebackException) -> None:
    """Remove the frames of HIDDEN_FILES from an exception, and from those that came before it."""
    current: traceback.TracebackException | None = trace
    while current is not None:
        current.stack = traceback.StackSummary.from_list(_without_runs(_author_frames(current)))
        context = current.__context__
        if context and not _has_author(context):  # the toolkit or a library has handled it
            current.__context__ = None
        cause = current.__cause__
        if cause and not _has_author(cause):  # a library's: its text says more than its frames
            cause.stack = traceback.StackSummary()
            cause.__cause__ = cause.__context__ = None
        current = cause or current.__context__


def _without_runs(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Keep the last of several frames in a row that are of libraries."""
    following = [*frames[1:], None][: len(frames)]
    return [
        frame
        for frame, next_ in zip(frames, following, strict=True)
        if next_ is None or not (frame.filename.startswith(LIBRARIES) and next_.filename.startswith(LIBRARIES))
    ]


def _has_author(trace: traceback.TracebackException) -> bool:
    """Whether an exception, or one that came before it, passed through code of the author."""
    current: traceback.TracebackException | None = trace
    while current is not None:
        if any(not frame.filename.startswith((*HIDDEN_FILES, *LIBRARIES)) for frame in current.stack):
            return True
        current = current.__cause__ or current.__context__
    return False


def _author_frames(trace: traceback.TracebackException) -> list[traceback.FrameSummary]:
    return [frame for frame in trace.stack if not frame.filename.startswith(HIDDEN_FILES)]


def place(error: BaseException, folder: Path) -> str:
    """Return where the code of a function failed, "functions/add/app.py:12"; "" if outside the project's files."""
    root = folder.parent.parent.resolve()
    if isinstance(error, SyntaxError) and error.filename:  # no frame is in that file
        places = [(error.filename, error.lineno)]
    else:
        places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    for file, line in reversed(places):  # the last frame first
        path = Path(file)
        is_installed = file.startswith((PACKAGE, HARNESS)) or "site-packages" in path.parts
        if path.is_relative_to(root) and not is_installed:
            return f"{path.relative_to(root)}:{line}"
    return ""


def summary(error: BaseException) -> str:
    """Return an exception's type and text in one line; for a syntax error without the place, which `place` returns."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return first_line(error)


def remedy(error: BaseException) -> str:
    """Return how to correct a mistake; "" if the mistake is not one of those known here."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, KeyError) and frames and frames[-1].filename in ENVIRON_FILES:
        return VARIABLE.format(name=error.args[0])
    for part, remedy_text in REMEDIES:
        if part in str(error):
            return remedy_text
    return ""
