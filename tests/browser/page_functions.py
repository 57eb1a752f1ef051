"""Functions for the page: every kind, every type of the restricted schema, and a hostile one."""

from __future__ import annotations

FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog
handler = serve_catalog(Path(__file__).parent / "catalog.json")
"""
FORM = '''
import json
from typing import Annotated, Any, Literal
from pydantic import AnyUrl, AwareDatetime, BaseModel, EmailStr, Field
from datetime import date
from mcp_functions import Elicit, serve, tool
from mcp_functions.annotated import Titles

class All(BaseModel):
    text: str = Field(min_length=2, max_length=9, title="Some text", description="Two to nine characters.")
    mail: Annotated[str, Field(json_schema_extra={"format": "email"})]
    site: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    day: date
    moment: AwareDatetime
    whole: int = Field(ge=1, le=9)
    real: float
    yes: bool = True
    maybe: bool | None = None
    plain: Literal["a", "b"]
    titled: Annotated[Literal["x", "y"], Titles("The X", "The Y")]
    old: Literal["o1", "o2"] = Field(json_schema_extra={"enumNames": ["One", "Two"]})
    many: list[Literal["p", "q", "r"]] = Field(min_length=1)
    named: list[Annotated[Literal["s", "t"], Titles("The S", "The T")]]
    optional: str | None = None

@tool
def fill(
    word: str, count: int = 3, loud: bool = False, size: Literal["S", "L"] = "L", more: dict[str, Any] | None = None,
    *, elicit: Elicit,
) -> str:
    """Ask for every type."""
    answer = elicit("all", "Fill this in", All)
    return json.dumps({"arguments": [word, count, loud, size, more], "answer": answer.model_dump(mode="json")})

handler = serve(fill)
'''
WORK = '''
from mcp_functions import Elicit, Log, Progress, Step, serve, tool

def reserve(city):
    return {"seat": f"12A in {city}"}

@tool
def work(city: str, *, elicit: Elicit, step: Step, log: Log, progress: Progress) -> str:
    """Book a flight."""
    log.info(f"looking for {city}")
    progress(1, total=2, message="half done")
    step("reserve", reserve, city)
    seat = elicit("seat", "Where would you like to sit?", str)
    if elicit("agree", f"Take {seat}?", bool):
        return f"Booked {seat} in {city}."
    return "Nothing was booked."

handler = serve(work)
'''
SEVERAL = '''
from mcp_functions import Elicit, ListRoots, Question, Sample, serve, tool

@tool
def visit(*, elicit: Elicit) -> str:
    """Ask to open a page."""
    elicit.url("page", "Please connect your account", "https://accounts.example/connect?x=1")
    return "Connected."

@tool
def think(*, sample: Sample, roots: ListRoots) -> str:
    """Ask the model, and for folders."""
    said = sample("idea", "What do you think?", max_tokens=50)
    return f"{said['content']['text']} in {[root['uri'] for root in roots()]}"

@tool
def plan(*, elicit: Elicit) -> str:
    """Ask two things in one round."""
    asked = elicit.together(Question("where", "Where to?", str), Question("when", "When?", str))
    return " in ".join(asked)

handler = serve(visit, think, plan)
'''
TASK = '''
from mcp_functions import Elicit, serve, tool

@tool(task="required")
def audit(year: int, *, elicit: Elicit) -> str:
    """Audit a year."""
    return "Written off." if elicit("write_off", "Write it off?", bool) else f"{year} is left as it is."

handler = serve(audit)
'''
READS = '''
from mcp_functions import prompt, resource, serve

@prompt
def briefing(topic: str) -> str:
    """Draft a briefing."""
    return f"Write about {topic}."

@resource("rules://house")
def rules() -> str:
    """The rules."""
    return "No shoes."

@resource("ticket://{number}")
def ticket(number: str) -> str:
    """A ticket."""
    return f"This is ticket {number}."

handler = serve(briefing, rules, ticket)
'''
CRASH = '''
from typing import Annotated
from mcp_functions import Progress, prompt, serve, tool
from mcp_functions.annotated import Length

@tool
def crash(text: Annotated[str, Length(0, 500)]) -> str:
    """Fail."""
    raise LookupError(f"no {text}")

@tool
def count(*, progress: Progress) -> str:
    """Count to two."""
    progress(1, total=3)
    progress(2, total=3)
    return "two"

@prompt
def greeting(city: str) -> str:
    """Greet a city."""
    return f"Greet {city}."

@greeting.complete("city")
def cities(typed, arguments):
    return [city for city in ("Lisbon", "Lima", "Rome") if city.startswith(typed)]

handler = serve(crash, count, greeting)
'''
ECHO = '''
from typing import Any
from mcp_functions import Elicit, serve, tool

@tool(name="echo")
def echo(text: str, value: Any = None, *, elicit: Elicit) -> str:
    """Say it again."""
    answer = elicit("word", "A word?", str)
    return f"{text}|{value}|{answer}"

handler = serve(echo)
'''
MARKUP = "<img src=x onerror=alert(1)><b class=injected>bold</b><script>alert(2)</script>"
HOSTILE = f"""
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from mcp_functions import Elicit, Log, Progress, serve, tool
from mcp_functions.annotated import Titles
from mcp_functions.content import ResourceLink

MARKUP = {MARKUP!r}

class Form(BaseModel):
    choice: Annotated[Literal["a", "b"], Titles(MARKUP, "javascript:alert(3)")]
    text: str = Field(title=MARKUP, description=MARKUP, default='"><script>alert(4)</script>')

@tool(title=MARKUP, description=MARKUP)
def hostile(
    word: Annotated[str, Field(title=MARKUP, description=MARKUP)] = MARKUP,
    *, elicit: Elicit, log: Log, progress: Progress,
):
    log.info({{"markup": MARKUP}}, logger=MARKUP)
    progress(1, total=2, message=MARKUP)
    elicit("form", MARKUP, Form)
    bad, good = "javascript:alert(5)", "https://ok.example/x"
    return [MARKUP, ResourceLink(uri=bad, name=MARKUP), ResourceLink(uri=good, name="fine")]

handler = serve(hostile)
"""
ODD = '''
from mcp_functions import serve, tool

SCHEMA = {
    "type": "object",
    "properties": {
        "loop": {"anyOf": [{"$ref": "#/$defs/loop"}]},
        "anything": True,
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "$defs": {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}},
}

@tool(input_schema=SCHEMA)
def odd(arguments: dict) -> str:
    """Take an odd schema."""
    return ", ".join(f"{name}={value}" for name, value in sorted(arguments.items()))

handler = serve(odd)
'''
SIGN_IN = """
from mcp_functions import serve_oauth
handler = serve_oauth()
"""
FUNCTIONS = {
    "mcp/app.py": FRONT,
    "fill/app.py": FORM,
    "work/app.py": WORK,
    "several/app.py": SEVERAL,
    "audit/app.py": TASK,
    "reads/app.py": READS,
    "echo/app.py": ECHO,
    "crash/app.py": CRASH,
    "hostile/app.py": HOSTILE,
    "odd/app.py": ODD,
    "oauth/app.py": SIGN_IN,
}
