"""Budgets of each path: modules, files, passes over JSON, and KMS calls. Each path runs in a fresh interpreter.

A failing test names the unexpected module and the chain of modules that imported it.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from tests.support import wire
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ARN = "arn:aws:kms:eu-west-1:111122223333:key/0a"

# Never on the way to an answer: what belongs to a loop, to the harness, to tests.
NEVER_IMPORTED = {"asyncio", "boto3", "botocore", "mcp_functions_harness", "moto", "yaml"}
LEAN = NEVER_IMPORTED | {
    "pydantic",
    "cryptography",
    "dataclasses",
    "inspect",
    "jsonschema",
    "aws_lambda_powertools",
    "pathlib",
}
RECORDS = {"dataclasses", "inspect"}  # are the author's
LIGHT = NEVER_IMPORTED | {"pydantic", "pydantic_core", "annotated_types", "jsonschema"}
PYDANTICS = {"asyncio", "dataclasses", "pathlib"}  # what pydantic brings in some version is its own affair
CALLS = {
    "aws", "aws.clients", "aws.connection", "aws.endpoints", "aws.errors", "aws.signing",
}  # fmt: skip
EVERY = {
    "assembly", "handlers", "handlers.catalog", "handlers.lookup", "http", "http.cors", "http.events",
    "http.exchange", "http.gateway", "http.identity", "http.request_log",
    "http.responses", "observability", "observability.lines", "protocol", "protocol.constants",
    "protocol.errors", "protocol.header_parameters", "protocol.headers",
    "protocol.json_reader", "protocol.json_writer", "protocol.messages", "protocol.scopes", "settings", "tuples",
}  # fmt: skip
FRONT_DOOR = EVERY | CALLS | {"front_door", "handlers.lists", "http.forwarding", "seal", "seal.resets"}
TOOL = EVERY | {
    "dispatch", "dispatch.dispatcher", "dispatch.preparation", "handlers.base", "handlers.decorators",
    "handlers.function_handler", "handlers.return_types", "handlers.runner", "handlers.signatures",
    "handlers.tools", "protocol.plain_values", "protocol.results", "schemas", "schemas.arguments", "schemas.checking",
    "schemas.json_types", "schemas.parameters", "schemas.type_reader", "serving",
}  # fmt: skip
ASKING = TOOL | CALLS | {
    "dispatch.conversations", "dispatch.seal_factory", "handlers.injection",
    "rounds", "rounds.asking", "rounds.capabilities", "rounds.elicitation",
    "rounds.input_requests", "rounds.questions", "rounds.record", "rounds.round", "rounds.running_steps",
    "schemas.annotations", "schemas.class_types", "schemas.forms", "seal", "seal.binding",
    "seal.budgets", "seal.canonical_json", "seal.chunked_encryption", "seal.claims",
    "seal.envelope", "seal.key_choice", "seal.keyring", "seal.keys", "seal.kms",
    "seal.request_state", "seal.resets", "seal.token_format",
}  # fmt: skip
KEEPING = {"store", "store.blobs", "store.dynamodb", "store.sealed_table", "store.table"}
OWN = {
    "list": FRONT_DOOR,
    "forward": FRONT_DOOR,
    "scalar": TOOL,
    "model": TOOL | {"schemas.class_types", "schemas.pydantic_types"},
    "record": TOOL | {"schemas.annotations", "schemas.class_types"},
    "asking": ASKING | {"schemas.pydantic_types"},
    "choice": ASKING,
    "form": ASKING | {"annotated"},
}
FORBIDDEN = {
    "list": LEAN,
    "forward": LEAN,
    "scalar": LEAN,
    "record": LEAN - RECORDS,
    "model": NEVER_IMPORTED - PYDANTICS,
    "asking": NEVER_IMPORTED - PYDANTICS,
    "choice": LIGHT | RECORDS,
    "form": LIGHT,
}
# All modules, with room for what a version of Python changes.
MOST_MODULES = {
    "list": 149,
    "forward": 152,
    "scalar": 120,
    "record": 134,
    "model": 274,
    "asking": 337,
    "choice": 227,
    "form": 227,
}

ADD = wire.message("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
ASK = wire.message("tools/call", {"name": "ask", "arguments": {"a": 2}})
LEG = {"to": "Ely", "day": "2026-07-28", "at": "2026-07-28T10:00:00Z"}
VISIT = {"legs": [LEG, LEG], "note": {"text": "Ely"}, "places": {"first": "2026-07-28"}, "seats": 1}
TOWN = {"place": {"action": "accept", "content": {"town": "Ely"}}}
ANSWER = wire.message(
    "tools/call", {"name": "ask", "arguments": {"a": 2}, "requestState": "STATE", "inputResponses": TOWN}
)
CHOICE = json.loads(json.dumps(ANSWER).replace('"place"', '"town"'))
EVENTS: dict[str, list[dict[str, Any]]] = {
    "list": [wire.event(wire.message("tools/list"))],
    "forward": [wire.event(ADD)],
    "scalar": [wire.event(ADD)],
    "model": [wire.event(wire.message("tools/call", {"name": "visit", "arguments": {"place": {"town": "Ely"}}}))],
    "record": [wire.event(wire.message("tools/call", {"name": "visit", "arguments": VISIT}))],
    "asking": [wire.event(ASK), wire.event(ANSWER)],
    "form": [wire.event(ASK), wire.event(ANSWER)],
    "choice": [wire.event(ASK), wire.event(CHOICE)],
}
ANSWERS = {
    "list": '"tools":[',
    "forward": "5",
    "scalar": '"structuredContent":5',
    "model": "Ely",
    "record": '"at":"2026-07-28T10:00:00Z"',
    **dict.fromkeys(("asking", "choice", "form"), "Ely"),
}


# Functions that store something, in an empty table that accepts every item.
WORK = {"name": "work", "arguments": {"a": 2}}
CALL = wire.message("tools/call", WORK, capabilities=wire.TASK_CAPABILITIES)
FIRST, GO_ON = (wire.message("tools/call", {**WORK, **more}) for more in ({}, {"requestState": "STATE"}))
KEEPERS = {"once": [wire.event(FIRST), wire.event(GO_ON)], "task": [wire.event(CALL)]}
KEPT = {"once": ["GetItem", "PutItem", "PutItem"], "task": ["GetItem", "PutItem", "PutItem", "Invoke"]}


class Aws:
    """KMS, Lambda and an empty table, as far as these paths need them. It records the operations."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        aws = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                aws.asked.append(self.headers.get("x-amz-target", "Invoke").rpartition(".")[2])
                key = base64.b64encode(bytes(32)).decode()
                answer = {"KeyId": ARN, "Plaintext": key, "CiphertextBlob": key}
                if aws.asked[-1].endswith("Item"):
                    answer = {}
                if aws.asked[-1] == "Invoke":
                    answer = {"statusCode": 200, "headers": {}, "body": "5", "isBase64Encoded": False}  # type: ignore[dict-item]
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        self.connection = Connection
        self.host = ""


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    running = Aws()
    with listening(running.connection) as running.host:
        yield running


@cache
def run_child(kind: str, url: str) -> dict[str, Any]:
    """Run one path in a fresh interpreter, without what an environment adds to the start of each."""
    environ = {
        **{name: value for name, value in os.environ.items() if name in {"PATH", "SYSTEMROOT"}},
        "PYTHONPATH": os.pathsep.join([str(ROOT / "layers" / "shared"), str(Path(pydantic.__file__).parent.parent)]),
        "HOME": os.devnull,  # the developer's AWS configuration files would make the toolkit import boto3
        "MCP_STACK": "shop",
        "MCP_AUTH_MODE": "none",
        "MCP_KMS_KEYS": ARN,
        "MCP_TABLE": "shop",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_ENDPOINT_URL": url,
    }
    catalog = ROOT / "functions" / "mcp" / "catalog.json"
    command = [
        sys.executable,
        "-S",
        str(ROOT / "tests" / "support" / "budget_child.py"),
        kind,
        str(catalog),
        json.dumps({**EVENTS, **KEEPERS}[kind]),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)  # noqa: S603 - our own
    assert ran.returncode == 0, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return document


@pytest.fixture(params=list(EVENTS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def measured(kind: str, aws: Aws) -> dict[str, Any]:
    return run_child(kind, f"http://{aws.host}")


def importers_of(measured: dict[str, Any], name: str) -> str:
    """Return the chain of modules that imported a module, up to the first."""
    chain, importers = [name], measured["importers"]
    while (importer := importers.get(chain[-1])) and importer not in chain:
        chain.append(importer)
    return " <- ".join(chain)


def test_each_kind_of_cold_start_responds_as_expected(kind: str, measured: dict[str, Any]) -> None:
    assert ANSWERS[kind] in measured["answers"][-1]["body"]


def test_a_cold_start_imports_only_expected_libraries(kind: str, measured: dict[str, Any]) -> None:
    crept = [name for name in measured["loaded"] if any(f"{name}.".startswith(f"{no}.") for no in FORBIDDEN[kind])]
    assert not crept, [importers_of(measured, name) for name in crept]


def test_a_cold_start_imports_exactly_these_modules_of_the_package(kind: str, measured: dict[str, Any]) -> None:
    own = {name.removeprefix("mcp_functions.") for name in measured["loaded"] if name.startswith("mcp_functions.")}
    crept = sorted(own - OWN[kind])
    assert not crept, [importers_of(measured, f"mcp_functions.{name}") for name in crept]
    assert own == OWN[kind]


def test_the_number_of_imported_modules_is_limited(kind: str, measured: dict[str, Any]) -> None:
    assert len(measured["loaded"]) <= MOST_MODULES[kind], [importers_of(measured, name) for name in measured["loaded"]]


def test_the_modules_of_the_first_event_are_imported_at_init(kind: str, measured: dict[str, Any]) -> None:
    homes = {"mcp_functions", "cryptography", "ssl", "http"}
    late = [name for name in measured["late"] if name.partition(".")[0] in homes]
    assert not late, [importers_of(measured, name) for name in late]
    assert kind


@pytest.mark.parametrize(
    ("kind", "works"),
    [
        ("list", [(1, 1)]),
        ("scalar", [(1, 2)]),  # the number as text, and the response
        ("record", [(1, 2)]),
        ("model", [(1, 1)]),  # pydantic itself writes the argument for its model
        ("forward", [(2, 1)]),  # parsed: the request and the function's answer
    ],
    indirect=["kind"],
)
def test_json_is_parsed_once_and_serialised_once(
    kind: str, measured: dict[str, Any], works: list[tuple[int, int]]
) -> None:
    assert [tuple(work) for work in measured["works"]] == works, kind


@pytest.mark.parametrize("kind", ["asking"], indirect=True)
def test_a_round_parses_and_serialises_json_a_fixed_number_of_times(measured: dict[str, Any]) -> None:
    asked, answered = (tuple(work) for work in measured["works"])
    # Serialised: the question for its fingerprint, what the round leaves, and the response.
    assert asked == (1, 3)
    # Parsed: the request and the claims. Serialised: the question again, and the response.
    assert answered == (2, 2)


@pytest.mark.parametrize("kind", ["asking"], indirect=True)
def test_a_round_digests_its_arguments_and_its_question_and_derives_one_key(measured: dict[str, Any]) -> None:
    assert [tuple(work) for work in measured["digests"]] == [(2, 1), (2, 1)]


def test_a_warm_answer_opens_no_file(kind: str, measured: dict[str, Any]) -> None:
    assert measured["opened"] == [], kind


def test_a_conversation_in_one_container_calls_kms_once(aws: Aws) -> None:
    run_child.cache_clear()
    aws.asked.clear()
    measured = run_child("asking", f"http://{aws.host}")
    assert ANSWERS["asking"] in measured["answers"][-1]["body"]
    assert aws.asked == ["GenerateDataKey"]


@pytest.mark.parametrize("kind", KEEPERS)
def test_a_function_with_a_table_calls_it_without_boto3(kind: str, aws: Aws) -> None:
    aws.asked.clear()
    measured = run_child(kind, f"http://{aws.host}")
    assert {answer["statusCode"] for answer in measured["answers"]} == {200}, measured["answers"]
    crept = [
        name for name in measured["loaded"] if any(f"{name}.".startswith(f"{no}.") for no in NEVER_IMPORTED - PYDANTICS)
    ]
    assert not crept, [importers_of(measured, name) for name in crept]
    loaded = {name.removeprefix("mcp_functions.") for name in measured["loaded"]}
    assert loaded >= KEEPING
    assert "table.s3" not in loaded
    asked = [operation for operation in aws.asked if operation != "GenerateDataKey"]
    assert asked[: len(KEPT[kind])] == KEPT[kind]


def test_only_one_sample_needs_pydantic() -> None:
    def needs_pydantic(app: Path) -> bool:
        code = "import runpy, sys; runpy.run_path(sys.argv[1]); sys.exit('pydantic_core' in sys.modules)"
        path = os.pathsep.join([str(ROOT / "layers" / "shared"), str(Path(pydantic.__file__).parent.parent)])
        environ = {"PYTHONPATH": path, "PATH": os.environ["PATH"]}
        command = [sys.executable, "-S", "-c", code, str(app)]
        done = subprocess.run(command, env=environ, capture_output=True, check=False)  # noqa: S603 - ours
        assert not done.stderr, done.stderr
        return done.returncode == 1

    assert [app.parent.name for app in sorted(ROOT.glob("functions/*/app.py")) if needs_pydantic(app)] == ["plan_trip"]
