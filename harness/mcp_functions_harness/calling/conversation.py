"""Holds the conversation of the command `call` with a server.

`run_call` sends a call, answers the server's questions, and waits for the end if the server makes the call an MCP task.
`complete` asks for the values of an argument that a user types.
"""

import re
from collections.abc import Sequence

from mcp_functions.protocol.wire_types import InputRequest, InputResponse, JSONObject, Params, ResultObject, Schema
from mcp_functions_harness.calling.answering import Answers
from mcp_functions_harness.calling.server import CalledServer
from mcp_functions_harness.calling.terminal import Terminal
from mcp_functions_harness.calling.words import find_entry, prompt_schema, read_arguments, suggestion
from mcp_functions_harness.client.tasks import Answer, Refused
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.verification.calls import Call


def run_call(server: CalledServer, call: Call, answers: Answers, terminal: Terminal) -> ResultObject:
    """Send the call, answer its questions, wait for its task if it becomes one, and return the result.

    Raises:
        Problem: the server refuses the call or does not answer, its task failed, or a question has no answer.
    """
    result = _converse(server, call, answers.answer)
    unused = answers.unused_keys()
    if unused:
        terminal.write(f"  not asked: {', '.join(unused)}")
    return result


def complete(server: CalledServer, target: str, argument: str, words: Sequence[str]) -> list[str]:
    """Return the values that the server suggests for an argument of a prompt or a URI template.

    Each word is `name=value`, as far as it is typed: the argument's own value, and those of others.

    Raises:
        Problem: it is a tool, an argument is unknown, or the server refuses.
    """
    ref, schema = _reference(server, target)
    typed = {argument: "", **read_arguments(target, words, schema)}
    properties = schema["properties"]
    if argument not in properties:
        raise Problem(f"{target} has no argument {argument}; {suggestion(argument, properties, 'it has')}")
    params: Params = {"ref": ref, "argument": {"name": argument, "value": typed.pop(argument)}}
    if typed:
        params["context"] = {"arguments": typed}
    match _converse(server, Call("completion/complete", params), _refuse_question):
        case {"completion": {"values": list(values)}} if all(isinstance(value, str) for value in values):
            return values
    raise Problem(f"the server's answer for {argument} of {target} is no list of texts")


def _reference(server: CalledServer, target: str) -> tuple[JSONObject, Schema]:
    """Return the `ref` that names a prompt or a URI template, and the schema of its arguments."""
    if "://" in target:
        names = re.findall(r"\{(\w+)\}", target)
        return {"type": "ref/resource", "uri": target}, {"properties": {name: {"type": "string"} for name in names}}
    list_name, entry = find_entry(server, target)
    if list_name == "tools":
        raise Problem(f"{target} is a tool: MCP completes arguments of prompts and of URI templates alone")
    return {"type": "ref/prompt", "name": target}, prompt_schema(entry)


def _refuse_question(_key: str, _request: InputRequest) -> InputResponse:
    raise Problem("the server asks for an answer, which a completion cannot get")


def _converse(server: CalledServer, call: Call, answer: Answer) -> ResultObject:
    try:
        return server.converse(call.method, call.params, answer, call.header_parameters)
    except Refused as error:
        # Without a code it is not the server's error, but the client's own text.
        text = str(error) if error.code is None else f"the server refuses: {error} ({error.code})"
        raise Problem(text) from error
    except (OSError, ValueError) as error:  # there is no response, or it is not JSON-RPC
        raise Problem(str(error)) from error
