"""Reads a call from the words of the command `call`, and runs it to its result.

`read_call` finds the tool, the prompt or the resource, and reads its arguments. `run_call` sends the call, answers the
server's questions, and waits for the end if the server makes the call an MCP task. `complete` asks for the values of an
argument that a user types.
"""

import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mcp_functions_harness.calling import values
from mcp_functions_harness.calling.answering import Answers
from mcp_functions_harness.calling.server import CalledServer
from mcp_functions_harness.calling.terminal import InputEnded, QuestionRefused, Terminal
from mcp_functions_harness.client import messages
from mcp_functions_harness.client.tasks import Answer, Refused
from mcp_functions_harness.problems import Problem, stop
from mcp_functions_harness.verification.calls import Call

# by the key of an entry's list in the catalog
METHODS = {"tools": "tools/call", "prompts": "prompts/get"}


def read_call(server: CalledServer, target: str, words: Sequence[str], terminal: Terminal) -> Call:
    """Find a tool, a prompt or a resource, and read its arguments. The user is asked for missing required ones.

    Args:
        server: the server that is called.
        target: the name of a tool or a prompt, or the URI of a resource.
        words: the arguments, each as `name=value`, or several as a JSON object.
        terminal: asks the user for missing arguments.

    Raises:
        Problem: there is no such name, or an argument is unknown, wrong or missing.
    """
    if "://" in target:
        return Call("resources/read", {"uri": target})
    list_name, entry = _find_entry(server, target)
    schema = entry["inputSchema"] if list_name == "tools" else _prompt_schema(entry)
    arguments = _read_arguments(target, words, schema)
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name in arguments:
            continue
        try:
            arguments[name] = terminal.ask_value(name, properties.get(name, {}), schema, required=True)
        except (QuestionRefused, InputEnded):
            stop(f"{target} needs {name}: add {name}=...")
    problem = values.find_problem(arguments, schema, schema)
    if problem:
        stop(f"the arguments of {target} do not fit: {problem}")
    params = {"name": target, "arguments": arguments}
    return Call(METHODS[list_name], params, messages.header_parameters(schema))


def complete(server: CalledServer, target: str, argument: str, words: Sequence[str]) -> list[str]:
    """Return the values that the server suggests for an argument, while a user types it.

    Args:
        server: the server that is called.
        target: the name of a prompt, or the URI template of a resource.
        argument: the name of the argument.
        words: what is typed so far, each as `name=value`: the argument's own, and the others'.

    Raises:
        Problem: it is a tool, an argument is unknown, or the server refuses.
    """
    if "://" in target:
        names = re.findall(r"\{(\w+)\}", target)
        schema: dict[str, Any] = {"properties": {name: {"type": "string"} for name in names}}
        ref = {"type": "ref/resource", "uri": target}
    else:
        list_name, entry = _find_entry(server, target)
        if list_name == "tools":
            stop(f"{target} is a tool: MCP completes arguments of prompts and of URI templates alone")
        schema = _prompt_schema(entry)
        ref = {"type": "ref/prompt", "name": target}
    typed = {argument: "", **_read_arguments(target, words, schema)}
    if argument not in schema["properties"]:
        stop(f"{target} has no argument {argument}; {_suggestion(argument, schema['properties'], 'it has')}")
    params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": typed.pop(argument)}}
    if typed:
        params["context"] = {"arguments": typed}

    def answer_nothing(_key: str, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        stop("the server asks for an answer, which a completion cannot get")

    return list(_converse(server, Call("completion/complete", params), answer_nothing)["completion"]["values"])


def run_call(server: CalledServer, call: Call, answers: Answers, terminal: Terminal) -> dict[str, Any]:
    """Send the call, answer its questions, wait for its task if it becomes one, and return the result.

    Raises:
        Problem: the server refuses the call or does not answer, its task failed, or a question has no answer.
    """
    result = _converse(server, call, answers.answer)
    unused = answers.unused_keys()
    if unused:
        terminal.write(f"  not asked: {', '.join(unused)}")
    return result


def _converse(server: CalledServer, call: Call, answer: Answer) -> dict[str, Any]:
    try:
        return server.converse(call.method, call.params, answer, call.header_parameters)
    except Refused as error:
        if error.code is None:  # not the server's error, but the client's own text
            stop(str(error), after=error)
        stop(f"the server refuses: {error} ({error.code})", after=error)
    except (OSError, ValueError) as error:  # there is no response, or it is not JSON-RPC
        stop(str(error), after=error)


def _find_entry(server: CalledServer, name: str) -> tuple[str, Mapping[str, Any]]:
    """Find the entry of a tool or a prompt; return "tools" or "prompts", and the entry."""
    known_names: list[str] = []
    for list_name in METHODS:
        for entry in server.entries(list_name):
            if entry["name"] == name:
                return list_name, entry
            known_names.append(str(entry["name"]))
    raise Problem(message=f"there is no tool or prompt {name}; {_suggestion(name, known_names, 'there are')}")


def _suggestion(unknown_name: str, known_names: Collection[str], introduction: str) -> str:
    """Return the known name that is most like the unknown one; if none is, the introduction and all known names."""
    similar = difflib.get_close_matches(unknown_name, known_names, n=1)
    if similar:
        return f"did you mean {similar[0]}?"
    return f"{introduction}: {', '.join(known_names) or 'none'}"


def _prompt_schema(prompt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a prompt's arguments, which are all strings."""
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
        name, equals, text = word.partition("=")
        is_object = word.lstrip().startswith("{")
        try:
            if is_object:
                arguments |= json.loads(word)
            elif equals:
                arguments[name] = values.read(text, properties.get(name, {}))
            else:
                stop(f"{word!r} is no argument of {target}: write arguments as key=value or as a JSON object")
        except ValueError as error:
            stop(f"{word!r} is no argument of {target}: {error}" if is_object else f"{name} of {target}: {error}")
    unknown_names = sorted(arguments.keys() - properties.keys())
    if unknown_names:
        first = unknown_names[0]
        stop(f"{target} has no argument {first}; {_suggestion(first, properties, 'it has')}")
    return arguments
