"""Runs in a new interpreter: answers events by one kind of function, and reports what that took, as JSON.

    python budget_child.py KIND CATALOG EVENTS

    loaded      the modules that were imported, at init and for the first event
    late        those of them that the first event imported
    importers   module -> who imported it
    answers     the responses; the first event is answered twice
    works       for each event: how many JSON texts were parsed, and written
    digests     for each event: how many SHA-256 digests were computed, and keys derived
    opened      the files that were opened after the first event

Until it watches the imports, it imports nothing: so every import of the toolkit is seen.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

imports: list[tuple[str, str]] = []  # a module, and the module that imported it
opened: list[str] = []


class ImportRecorder:
    """The first finder in sys.meta_path. It records each import of a new module, and leaves it to the next finder."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Record the module, and the module whose code imports it: the first frame that is not importlib's."""
        frame = sys._getframe(1)  # noqa: SLF001 - the only way to know
        while frame.f_back and "importlib" in frame.f_globals.get("__name__", ""):
            frame = frame.f_back
        imports.append((name, frame.f_globals.get("__name__", "?")))


def load(kind: str, catalog: str) -> Callable[[Any, Any], dict[str, Any]]:
    """Define a function of a kind as its app.py would, and return its handler.

    A class that an annotation names is written into the globals of this module, where the toolkit looks it up.

    Args:
        kind: "list" and "forward" (the endpoint), "scalar", "record", "choice", "form", "once", "task", "model" or
            "ask": what the arguments or the question of the tool are.
        catalog: the path of catalog.json, for the endpoint.
    """
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
    makers = {"record": make_record, "choice": make_choice, "form": make_form}
    if kind in makers:
        return serve(tool(makers[kind]()))
    if kind in {"once", "task"}:
        from mcp_functions import Step

        globals()["Step"] = Step
        decorator = tool(single_use="replay") if kind == "once" else tool(task="required")

        @decorator
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


def make_choice() -> Callable[..., Any]:
    """Make a function that asks for one value."""
    from typing import Literal

    from mcp_functions import Elicit

    def ask(a: int, *, elicit: Elicit) -> str:
        """Ask where."""
        return elicit("town", f"Where, {a}?", Literal["Ely", "Bath"])

    globals()["Elicit"] = Elicit
    return ask


def make_form() -> Callable[..., Any]:
    """Make a function that shows a dataclass as its form."""
    from dataclasses import dataclass
    from typing import Annotated

    from mcp_functions import Elicit
    from mcp_functions.annotated import Length

    @dataclass
    class Place:
        town: Annotated[str, Length(1, 40), "Where to"]

    def ask(a: int, *, elicit: Elicit) -> str:
        """Ask where."""
        return elicit("place", f"Where, {a}?", Place).town

    globals().update(Elicit=Elicit, Length=Length, Annotated=Annotated)
    return ask


def make_record() -> Callable[..., Any]:
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
    """Lambda's context object, with the members that the toolkit reads."""

    function_name = "shop_add"
    aws_request_id = "2f0d2b5e"

    def get_remaining_time_in_millis(self) -> int:
        """Return 29 seconds."""
        return 29_000


def counted(function: Callable[..., Any], counts: dict[str, int], name: str) -> Callable[..., Any]:
    """Return the function, which then counts its calls under a name."""

    def counting(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own
        counts[name] += 1
        return function(*args, **kwargs)

    return counting


def main(kind: str, catalog: str, events_json: str) -> Mapping[str, Any]:
    """Answer the first event, and then all events, the first one again; return the report."""
    before = set(sys.modules)
    sys.meta_path.insert(0, ImportRecorder())
    handler = load(kind, catalog)
    at_init = set(sys.modules) - before
    import json

    events = json.loads(events_json)
    first = handler(events[0], Context())
    sys.meta_path.pop(0)
    loaded = sorted(set(sys.modules) - before)
    import json.decoder
    import json.encoder

    counts = {"parsed": 0, "serialised": 0, "digested": 0, "derived": 0}
    decoder = json.decoder.JSONDecoder
    encoder = json.encoder.JSONEncoder
    decoder.raw_decode = counted(decoder.raw_decode, counts, "parsed")  # type: ignore[method-assign]
    encoder.iterencode = counted(encoder.iterencode, counts, "serialised")  # type: ignore[method-assign]
    hashlib = sys.modules.get("hashlib")  # None if the function does not encrypt
    encryption = sys.modules.get("mcp_functions.seal.chunked_encryption")
    if hashlib and encryption:
        hashlib.sha256 = counted(hashlib.sha256, counts, "digested")  # type: ignore[attr-defined]
        encryption.derive = counted(encryption.derive, counts, "derived")  # type: ignore[attr-defined]
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    answers, works, digests = [first], [], []
    for event in events:
        if "STATE" in event["body"]:
            state = json.loads(first["body"])["result"]["requestState"]
            event["body"] = event["body"].replace("STATE", state)
        counts.update(dict.fromkeys(counts, 0))
        answers.append(handler(event, Context()))
        works.append((counts["parsed"], counts["serialised"]))
        digests.append((counts["digested"], counts["derived"]))
    return {
        "loaded": loaded,
        "late": sorted(set(loaded) - at_init),
        "importers": dict(reversed(imports)),  # the first importer of each module
        "answers": answers,
        "works": works,
        "digests": digests,
        "opened": opened,
    }


if __name__ == "__main__":
    report = main(*sys.argv[1:])
    import json

    sys.stdout.write(json.dumps(report))
