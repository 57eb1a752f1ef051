"""Runs in a fresh interpreter: answers events by one path, and tells what that took.

It imports nothing but what every interpreter has at hand before it begins to watch.
"""
# ruff: noqa: PLC0415 - the time of each import is measured

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

came: list[tuple[str, str]] = []  # module, and who imported it
opened: list[str] = []


class Watch:
    """Sees every import that finds nothing in sys.modules, first of all finders, and finds nothing itself."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Note who asks."""
        frame = sys._getframe(1)  # noqa: SLF001 - the only way to know
        while frame.f_back and "importlib" in frame.f_globals.get("__name__", ""):
            frame = frame.f_back
        came.append((name, frame.f_globals.get("__name__", "?")))


def path(kind: str, catalog: str) -> Callable[[Any, Any], dict[str, Any]]:
    """Load a function as its app.py does."""
    if kind in {"list", "forward"}:
        from mcp_functions import serve_catalog

        return serve_catalog(catalog)
    from mcp_functions import serve, tool

    if kind == "scalar":

        @tool
        def add(a: int, b: int) -> int:
            """Add two whole numbers."""
            return a + b

        return serve(add)
    if make := {"record": record, "choice": choosing, "form": filling}.get(kind):
        return serve(tool(make()))
    if kind in {"once", "task"}:
        from mcp_functions import Step

        globals()["Step"] = Step
        once = tool(single_use="replay") if kind == "once" else tool(task="required")

        @once
        def work(a: int, *, step: Step) -> int:
            """Work."""
            return int(step("work", abs, a))

        return serve(work)
    from pydantic import BaseModel

    globals()["Place"] = type("Place", (BaseModel,), {"__annotations__": {"town": str}, "__module__": __name__})
    if kind == "model":

        @tool
        def visit(place: Place) -> str:  # type: ignore[name-defined]  # noqa: F821 - made above
            """Go there."""
            return str(place.town)

        return serve(visit)
    from mcp_functions import Elicit

    globals()["Elicit"] = Elicit

    @tool
    def ask(a: int, *, elicit: Elicit) -> str:
        """Ask where."""
        return str(elicit("place", f"Where, {a}?", Place).town)  # type: ignore[name-defined]  # noqa: F821

    return serve(ask)


def choosing() -> Callable[..., Any]:
    """Make a function that asks for one value."""
    from typing import Literal

    from mcp_functions import Elicit

    def ask(a: int, *, elicit: Elicit) -> str:
        """Ask where."""
        return elicit("town", f"Where, {a}?", Literal["Ely", "Bath"])

    globals()["Elicit"] = Elicit
    return ask


def filling() -> Callable[..., Any]:
    """Make a function that shows a dataclass as its form."""
    from dataclasses import dataclass
    from typing import Annotated

    from mcp_functions import Elicit, Length

    @dataclass
    class Place:
        town: Annotated[str, Length(1, 40), "Where to"]

    def ask(a: int, *, elicit: Elicit) -> str:
        """Ask where."""
        return elicit("place", f"Where, {a}?", Place).town

    globals().update(Elicit=Elicit, Length=Length, Annotated=Annotated)
    return ask


def record() -> Callable[..., Any]:
    """Make a function whose arguments and result are of classes that are read without pydantic."""
    from dataclasses import dataclass
    from datetime import date, datetime
    from enum import Enum
    from typing import Annotated, Literal, NotRequired, TypedDict

    from annotated_types import Ge

    class Colour(Enum):
        RED = "red"

    @dataclass
    class Leg:
        to: Annotated[str, "Where to"]
        day: date
        at: datetime | None = None
        colour: Colour = Colour.RED

    class Note(TypedDict):
        text: str
        kind: NotRequired[Literal["a", "b"]]

    def visit(
        legs: list[Leg], note: Note, places: dict[str, date], seats: Annotated[int, Ge(1)], colour: Colour = Colour.RED
    ) -> Leg:
        """Go there."""
        return Leg(note["text"], places["first"], legs[seats].at, colour)

    for name, value in (("Leg", Leg), ("Note", Note), ("Colour", Colour), ("date", date), ("datetime", datetime)):
        globals()[name] = value
    globals().update(Annotated=Annotated, Literal=Literal, NotRequired=NotRequired, Ge=Ge)
    return visit


class Context:
    """As much of Lambda's context as is read."""

    function_name = "shop-add"
    aws_request_id = "2f0d2b5e"

    def get_remaining_time_in_millis(self) -> int:
        """Return 29 seconds."""
        return 29_000


def counted(function: Callable[..., Any], counts: dict[str, int], name: str) -> Callable[..., Any]:
    """Count calls."""

    def counting(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own
        counts[name] += 1
        return function(*args, **kwargs)

    return counting


def main(kind: str, catalog: str, written: str) -> Mapping[str, Any]:
    """Answer the events of a path, the first of them twice and the others once."""
    before = set(sys.modules)
    sys.meta_path.insert(0, Watch())
    handler = path(kind, catalog)
    at_init = set(sys.modules) - before
    import json

    events = json.loads(written)
    first = handler(events[0], Context())
    sys.meta_path.pop(0)
    loaded = sorted(set(sys.modules) - before)
    import json.decoder
    import json.encoder

    counts = {"parsed": 0, "serialised": 0, "digested": 0, "derived": 0}
    decoder, encoder = json.decoder.JSONDecoder, json.encoder.JSONEncoder
    decoder.raw_decode = counted(decoder.raw_decode, counts, "parsed")  # type: ignore[method-assign]
    encoder.iterencode = counted(encoder.iterencode, counts, "serialised")  # type: ignore[method-assign]
    hashlib, envelope = sys.modules.get("hashlib"), sys.modules.get("mcp_functions.seal.envelope")
    if hashlib and envelope:
        hashlib.sha256 = counted(hashlib.sha256, counts, "digested")  # type: ignore[attr-defined]
        envelope.derive = counted(envelope.derive, counts, "derived")  # type: ignore[attr-defined]
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    answers, works, digests = [first], [], []
    for event in events:
        if "STATE" in event["body"]:
            event["body"] = event["body"].replace("STATE", json.loads(first["body"])["result"]["requestState"])
        counts.update(dict.fromkeys(counts, 0))
        answers.append(handler(event, Context()))
        works.append((counts["parsed"], counts["serialised"]))
        digests.append((counts["digested"], counts["derived"]))
    return {
        "loaded": loaded,
        "late": sorted(set(loaded) - at_init),
        "importers": dict(reversed(came)),
        "answers": answers,
        "works": works,
        "digests": digests,
        "opened": opened,
    }


if __name__ == "__main__":
    told = main(*sys.argv[1:])
    import json

    sys.stdout.write(json.dumps(told))
