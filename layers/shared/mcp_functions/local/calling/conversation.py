"""One call, from the words of a command to its result.

`read_call` finds the tool, the prompt or the resource, and reads the arguments. `run_call` sends the call, answers the
server's questions in further requests (rounds), and waits if the server makes the call an MCP task.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import messages
from mcp_functions.local.calling import values
from mcp_functions.local.calling.terminal import InputEnded, QuestionRefused
from mcp_functions.local.problems import Problem, stop
from mcp_functions.local.task_client import Refused
from mcp_functions.local.verification.candidates import Call

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mcp_functions.local.calling.answering import Answers
    from mcp_functions.local.calling.server import Server
    from mcp_functions.local.calling.terminal import Terminal
    from mcp_functions.protocol.wire_types import JSONValue

METHODS = {"tools": "tools/call", "prompts": "prompts/get"}


def read_call(server: Server, target: str, words: Sequence[str], terminal: Terminal) -> Call:
    """Find a tool, a prompt or a resource, and read its arguments; ask the user for required ones that are missing.

    Args:
        server: the server that is called.
        target: a name, or a URI.
        words: arguments as `key=value`, or a JSON object.
        terminal: asks the user for missing arguments.

    Raises:
        Problem: there is no such name, or an argument is unknown, wrong or missing.

    """
    if "://" in target:
        return Call("resources/read", {"uri": target})
    list_name, entry = _find(server, target)
    schema = entry["inputSchema"] if list_name == "tools" else _schema_of_prompt(entry)
    arguments = _read_arguments(target, words, schema)
    for name in schema.get("required", ()):
        if name not in arguments:
            arguments[name] = _ask_argument(target, name, schema, terminal)
    problem = values.find_problem(arguments, schema, schema)
    if problem:
        stop(f"the arguments of {target} do not fit: {problem}")
    params = {"name": target, "arguments": arguments}
    return Call(METHODS[list_name], params, messages.header_parameters(schema))


def run_call(server: Server, call: Call, answers: Answers, terminal: Terminal) -> dict[str, Any]:
    """Call, answer what is asked, and follow the task that a call may become; return the result.

    Raises:
        Problem: the server refuses, the task failed, or a question has no answer.
    """
    try:
        result = server.converse(call.method, call.params, answers.answer, call.header_parameters)
    except Refused as error:
        stop(f"the server refuses: {error} ({error.code})" if error.code else str(error), after=error)
    except ValueError as error:
        stop(str(error), after=error)
    unused = answers.unused_keys()
    if unused:
        terminal.write(f"  not asked: {', '.join(unused)}")
    return result


def _find(server: Server, name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the list that has a name, "tools" or "prompts", and its entry."""
    names = []
    for list_name in METHODS:
        for entry in server.entries(list_name):
            if entry["name"] == name:
                return list_name, entry
            names.append(str(entry["name"]))
    raise Problem(message=f"there is no tool or prompt {name}; {_suggestion(name, names, 'there are')}")


def _suggestion(name: str, known: Collection[str], introduction: str) -> str:
    """Return the known name that is most like an unknown one, or all known names after the introduction."""
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"{introduction}: {', '.join(known) or 'none'}"


def _schema_of_prompt(prompt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a prompt, which are texts, as a schema."""
    arguments = prompt.get("arguments", ())
    return {
        "type": "object",
        "properties": {argument["name"]: {"type": "string"} for argument in arguments},
        "required": [argument["name"] for argument in arguments if argument.get("required")],
    }


def _read_arguments(target: str, words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    arguments: dict[str, Any] = {}
    for word in words:
        try:
            arguments |= _read_argument(word, properties)
        except ValueError as error:
            stop(f"{word!r} is no argument of {target}: {error}")
    for name in arguments.keys() - properties.keys():  # the first one stops
        stop(f"{target} has no argument {name}; {_suggestion(name, properties, 'it has')}")
    return arguments


def _read_argument(word: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    if word.lstrip().startswith("{"):
        return dict(json.loads(word))
    name, equals, text = word.partition("=")
    if not equals:
        wrong = "write arguments as key=value or as a JSON object"
        raise ValueError(wrong)
    return {name: values.read(text, properties.get(name, {}))}


def _ask_argument(target: str, name: str, schema: Mapping[str, Any], terminal: Terminal) -> JSONValue:
    field = schema.get("properties", {}).get(name, {})
    try:
        return terminal.ask_value(name, field, schema, required=True)
    except (QuestionRefused, InputEnded):
        stop(f"{target} needs {name}: add {name}=...")
