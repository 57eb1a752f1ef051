"""The page of recipes: its templates are linted, its code runs, and each test here proves one of its claims."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from dataclasses import replace
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel

from functions.get_weather import app as get_weather
from mcp_functions import Elicit, Step, serve, settings, tool
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog as catalogs
from mcp_functions.http import events, metadata
from mcp_functions.seal.kms import KmsKey
from mcp_functions_harness import Harness, catalog, checks, template
from mcp_functions_harness.scaffold.beginning import init
from mcp_functions_harness.testing import Conversation, deployed
from tests.conformance import node
from tests.docs.pages import FENCED, ROOT, Page
from tests.project import test_build
from tests.support import gateways, wire
from tests.support.endpoints import make_function
from tests.support.placements import Lambdas
from tests.support.settings import make_settings
from tests.support.strict_kms import StrictKms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_functions.http.gateway import LambdaFunction

PAGE = Page.named("recipes.md")
ROUTE = ROOT / "docs/recipes/route.js"


def read_recipe(block: str) -> Any:  # noqa: ANN401 - JSON
    """Parse a recipe. It changes resources of our template, so most of its resources have no type."""
    recipe: Any = template.parse(block)
    for resource in recipe["Resources"].values():
        if not resource["Type"]:
            del resource["Type"]
    return recipe


TEMPLATES = [read_recipe(block) for kind, block in FENCED.findall(PAGE.text) if kind == "yaml"]
EDGE, DOMAIN, MUTUAL, URL, ONE, VERSIONS, CANARY, PRIMARY, REPLICA = TEMPLATES
OWN_STACKS = sorted((ROOT / "docs/recipes").glob("*.yaml"))
SEAT = {"action": "accept", "content": {"seat": "window"}}
NEEDS_SAM = pytest.mark.skipif(
    not test_build.SAM_BIN.exists() and not os.environ.get("CI"), reason="no .venv-sam: make test-all prepares it"
)


# ---- The templates


def merge_templates(ours: Any, more: Any) -> Any:  # noqa: ANN401 - JSON
    """Write one template over another; functions of CloudFormation, and resources of another type, replace ours."""
    if not (isinstance(ours, dict) and isinstance(more, dict)):
        return more
    if any(key == "Ref" or key.startswith("Fn::") for key in more) or more.get("Type", ours.get("Type")) != ours.get(
        "Type"
    ):
        return more
    return {**ours, **{key: merge_templates(ours[key], value) if key in ours else value for key, value in more.items()}}


@NEEDS_SAM
@pytest.mark.parametrize(
    "recipes",
    [[EDGE, DOMAIN, MUTUAL, URL, ONE, VERSIONS, CANARY, PRIMARY], [REPLICA]],
    ids=["all of them at once", "a replica"],
)
def test_every_template_passes_the_linter_before_and_after_translation(
    recipes: list[dict[str, Any]], tmp_path: Path
) -> None:
    written: Any = template.read(ROOT / "template.yaml")
    for recipe in recipes:
        written = merge_templates(written, recipe)
    path = tmp_path / "template.json"
    path.write_text(json.dumps(written), encoding="utf-8")
    translated = tmp_path / "translated.json"
    translated.write_text(test_build.run("python", test_build.TRANSLATE, path), encoding="utf-8")
    # E3724: SAM takes AutoPublishAliasAllProperties in Globals (its globals.py); cfn-lint's schema lacks it.
    test_build.run("cfn-lint", "--ignore-checks", "E3724", "--", path, translated)
    if CANARY in recipes:
        resources = json.loads(translated.read_text(encoding="utf-8"))["Resources"]
        alias = resources["UpdateWorkItemAliaslive"]
        assert alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
        assert alias["Properties"]["Name"] == "live"
        paths = resources["HttpApi"]["Properties"]["Body"]["paths"]
        invoked = paths["/mcp/add"]["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]["uri"]
        assert "${AddAliaslive}" in invoked["Fn::Sub"]
        assert resources["AuditYearWorkerEventInvokeConfig"]["Properties"]["Qualifier"] == "live"
        (domain,) = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::ApiGatewayV2::DomainName"]
        assert domain["MutualTlsAuthentication"] == {"TruststoreUri": {"Ref": "Truststore"}}
        (server,) = resources["HttpApi"]["Properties"]["Body"]["servers"]
        assert server["x-amazon-apigateway-endpoint-configuration"]["disableExecuteApiEndpoint"]


@NEEDS_SAM
def test_a_changed_description_publishes_a_version_and_a_changed_parameter_alone_does_not(tmp_path: Path) -> None:
    written = merge_templates(template.read(ROOT / "template.yaml"), VERSIONS)
    raised = merge_templates(written, {"Globals": {"Function": {"Description": "2"}}})

    def versions(of: dict[str, Any], *parameters: str) -> set[str]:
        path = tmp_path / "template.json"
        path.write_text(json.dumps(of), encoding="utf-8")
        resources = json.loads(test_build.run("python", test_build.TRANSLATE, path, *parameters))["Resources"].items()
        return {name for name, resource in resources if resource["Type"] == "AWS::Lambda::Version"}

    before = versions(written)
    assert before
    assert versions(written, "Generation=2") == before, "aws/serverless-application-model#3820 is mended"
    assert versions(raised).isdisjoint(before)


@pytest.mark.parametrize("recipe", [EDGE, DOMAIN, MUTUAL, URL, VERSIONS, CANARY, PRIMARY, REPLICA])
def test_the_project_passes_the_checks_with_every_recipe_except_the_single_lambda(recipe: dict[str, Any]) -> None:
    project = checks.read(ROOT)
    complaints = checks.complaints(replace(project, template=merge_templates(project.template, recipe)))
    # The reader gives values to the parameters of the recipe, as each complaint says.
    own = tuple(f"template.yaml: the parameter {name} has no value" for name in recipe.get("Parameters", ()))
    assert [complaint for complaint in complaints if not complaint.startswith(own)] == []


# ---- Routing at the edge


RUN = """
const fs = require('fs'), vm = require('vm');
const context = vm.createContext({});
vm.runInContext(process.argv[1] + '; globalThis.handler = handler;', context);
const events = JSON.parse(fs.readFileSync(0, 'utf-8'));
process.stdout.write(JSON.stringify(events.map((event) => context.handler(event))));
"""


def code(functions: dict[str, Any]) -> str:
    source = ROUTE.read_text(encoding="utf-8")
    table = "const FUNCTIONS = { tools: {}, prompts: {}, resources: {} };"
    assert table in source
    return source.replace(table, f"const FUNCTIONS = {json.dumps(functions)};")


def routes_of(*requests: dict[str, Any], functions: dict[str, Any] | None = None) -> list[str]:
    """Run requests through the function at the edge, and return where they go."""
    events = [{"version": "1.0", "context": {}, "viewer": {"ip": "192.0.2.7"}, "request": each} for each in requests]
    known: Any = catalog.read(ROOT / "functions")["functions"] if functions is None else functions
    done = subprocess.run(  # noqa: S603 - our own words
        [node.needed(), "-e", RUN, code(known)], input=json.dumps(events), capture_output=True, text=True, check=True
    )
    return [str(request["uri"]) for request in json.loads(done.stdout)]


def request(called: str, name: str | None = None, /, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    headers = {"mcp-method": {"value": called}, **({"mcp-name": {"value": name}} if name is not None else {})}
    return {"method": "POST", "uri": "/mcp", "querystring": {}, "cookies": {}, "headers": headers, **more}


def test_the_edge_function_routes_a_call_by_its_headers() -> None:
    assert routes_of(
        request("tools/call", "update_work_item"),
        request("prompts/get", "briefing"),
        request("resources/read", "house://rules"),
    ) == ["/mcp/update_work_item", "/mcp/briefing", "/mcp/house_rules"]


def test_the_edge_function_routes_an_unknown_name_to_the_endpoint() -> None:
    twice = {"value": "add", "multiValue": [{"value": "add"}, {"value": "ticket"}]}
    strange = [
        request("server/discover"),
        request("tools/list"),
        request("tools/call"),
        request("tools/call", "no_such_tool"),
        request("tools/call", "=?base64?YWRk?="),
        request("tools/call", "constructor"),
        request("tools/call", "__proto__"),
        request("constructor", "add"),
        request("prompts/get", "add"),
        request("resources/read", "tickets://ACME/7"),
        request("tools/call", "add", method="GET"),
        request("tools/call", "add", headers={}),
        request("tools/call", "add", headers={"mcp-method": {"value": "tools/call"}, "mcp-name": twice}),
    ]
    assert routes_of(*strange) == ["/mcp"] * len(strange)
    assert routes_of(request("tools/call", "add", uri="/elsewhere")) == ["/elsewhere"]
    assert routes_of(request("tools/call", "add"), functions={}) == ["/mcp"]


def test_an_edge_function_with_150_tools_is_smaller_than_10_kilobytes() -> None:
    many = {f"a_tool_of_some_length_{n}": f"a_folder_{n}" for n in range(150)}
    assert len(code({"tools": many, "prompts": {}, "resources": {}})) < 10 * 1024


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(ROOT / "functions", state_dir=tmp_path_factory.mktemp("state")) as running:
        yield running


def post_message(harness: Harness, path: str, message: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection(urlsplit(harness.url).netloc, timeout=60)
    body = json.dumps(message)
    connection.request("POST", path, body, {**wire.headers(message), **headers})
    response = connection.getresponse()
    answered = response.status, json.loads(response.read())
    connection.close()
    return answered


def test_a_function_refuses_a_header_that_contradicts_the_body(harness: Harness) -> None:
    message = wire.message("tools/call", {"name": "get_weather", "arguments": {"location": "Rome"}})
    (path,) = routes_of(request("tools/call", "add"))
    status, answered = post_message(harness, path, message, **{"mcp-name": "add"})
    assert (path, status, answered["error"]["code"]) == ("/mcp/add", 400, -32020)


def test_a_conversation_continues_when_it_changes_between_the_endpoint_and_its_function(harness: Harness) -> None:
    called = {"name": "get_weather", "arguments": {"location": "Rome"}}
    (path,) = routes_of(request("tools/call", "get_weather"))
    assert path == "/mcp/get_weather"
    for first, second in ((path, "/mcp"), ("/mcp", path)):
        _, asked = post_message(harness, first, wire.message("tools/call", called))
        answers = {"github_login": {"action": "accept", "content": {"name": "octocat"}}}
        more = {"requestState": asked["result"]["requestState"], "inputResponses": answers}
        _, told = post_message(harness, second, wire.message("tools/call", {**called, **more}, id=2))
        assert told["result"]["content"][0]["text"].startswith("Current weather in Rome")


# ---- A domain, and a function URL


def test_a_conversation_continues_at_another_host() -> None:
    called = {"name": "get_weather", "arguments": {"location": "Rome"}}
    answers = {"github_login": {"action": "accept", "content": {"name": "octocat"}}}
    function = serve(get_weather.get_weather)

    def said(host: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        event = gateways.http_api(gateways.http_request(wire.message("tools/call", {**called, **more})))
        event["headers"]["host"] = event["requestContext"]["domainName"] = host
        return wire.read(function(event, wire.Context("local_get_weather")), "tools/call")

    asked = said("abc123.execute-api.eu-central-1.amazonaws.com")["result"]
    told = said("mcp.example.com", requestState=asked["requestState"], inputResponses=answers)
    assert "Current weather" in told["result"]["content"][0]["text"]


def test_the_metadata_names_the_url_that_clients_use() -> None:
    url = "https://mcp.example.com/mcp"
    found = make_settings(stack="s", auth_mode="jwt", jwt_issuer="https://id.example", resource_url=url)
    event = gateways.http_api(gateways.http_request(wire.message("tools/list")))
    event["requestContext"]["domainName"] = "abc.execute-api.eu-west-1.amazonaws.com"
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        request = events.read({**event, "rawPath": path}, wire.Context(), now=0)
        document = metadata.document(request, found, [])
        assert document
        assert document["resource"] == url


def serve_at_url(
    function: LambdaFunction, method: str, params: dict[str, Any], signer: str | None = None
) -> dict[str, Any]:
    event = gateways.function_url(gateways.http_request(wire.message(method, params)))
    return function(gateways.by_iam(event, signer) if signer else event, wire.Context("local_get_weather"))


def test_a_function_responds_at_its_function_url() -> None:
    called = {"name": "get_weather", "arguments": {"location": "Rome"}}
    asked = serve_at_url(serve(get_weather.get_weather), "tools/call", called)
    assert "requestState" in wire.read(asked, "tools/call")["result"]


def test_the_signer_of_a_function_url_is_the_signer_of_the_api() -> None:
    called = {"name": "get_weather", "arguments": {"location": "Rome"}}
    answers = {"github_login": {"action": "accept", "content": {"name": "octocat"}}}
    with deployed(MCP_AUTH_MODE="iam"):
        function = serve(get_weather.get_weather)
        asked = wire.read(serve_at_url(function, "tools/call", called, "alice"), "tools/call")["result"]
        more = {**called, "requestState": asked["requestState"], "inputResponses": answers}
        sent = gateways.http_api(gateways.http_request(wire.message("tools/call", more)))
        context = wire.Context("local_get_weather")
        response = wire.read(function(gateways.by_iam(sent, "alice"), context), "tools/call")
        assert "Current weather" in response["result"]["content"][0]["text"]
        assert function(gateways.by_iam(sent, "bob"), context)["statusCode"] == 400


@pytest.mark.parametrize("mode", ["iam", "jwt"])
def test_a_function_url_without_its_authorizer_refuses_every_caller(mode: str) -> None:
    called = {"name": "get_weather", "arguments": {"location": "Rome"}}
    with deployed(**{**gateways.JWT_SETTINGS, "MCP_AUTH_MODE": mode}):
        function = serve(get_weather.get_weather)
        for signer in (None, *(["alice"] if mode == "jwt" else [])):
            answered = serve_at_url(function, "tools/call", called, signer)
            assert answered["statusCode"] == 500
            assert "result" not in json.loads(answered["body"])


def test_a_function_url_lists_its_own_names_only() -> None:
    listed = wire.read(serve_at_url(serve(get_weather.get_weather), "tools/list", {}), "tools/list")["result"]["tools"]
    assert [entry["name"] for entry in listed] == ["get_weather"]


# ---- Several handlers in one Lambda


def test_several_handlers_in_one_lambda_are_an_endpoint(tmp_path: Path) -> None:
    (tmp_path / "functions/mcp").mkdir(parents=True)
    (tmp_path / "functions/mcp/app.py").write_text(PAGE.code("python"), encoding="utf-8")
    with Harness(tmp_path / "functions", state_dir=tmp_path) as running:
        _, listed = post_message(running, "/mcp", wire.message("tools/list", {}))
        assert [entry["name"] for entry in listed["result"]["tools"]] == ["add", "book_flight"]
        called = {"name": "book_flight", "arguments": {"city": "Rome"}}
        _, asked = post_message(running, "/mcp", wire.message("tools/call", called))
        more = {"requestState": asked["result"]["requestState"], "inputResponses": {"seat": SEAT}}
        _, told = post_message(running, "/mcp", wire.message("tools/call", {**called, **more}, id=2))
        assert told["result"]["content"][0]["text"] == "Booked: Rome, window."
        assert {invocation.folder for invocation in running.invocations} == {"mcp"}


def test_the_template_of_the_single_lambda_passes_the_checks(tmp_path: Path) -> None:
    init(tmp_path)
    shutil.rmtree(tmp_path / "functions/book_flight")
    (tmp_path / "functions/mcp/app.py").write_text(PAGE.code("python"), encoding="utf-8")
    catalog.write(tmp_path / "functions", catalog.generate(tmp_path / "functions"))
    path = tmp_path / "template.yaml"
    ours: Any = merge_templates(template.read(path), ONE)
    kept = {name: block for name, block in ours["Resources"].items() if not name.startswith("BookFlight")}
    path.write_text(json.dumps({**ours, "Resources": kept}), encoding="utf-8")
    assert checks.complaints(checks.read(tmp_path)) == []


def test_a_state_of_one_handler_is_refused_by_another_in_the_same_lambda() -> None:
    @tool
    def other(city: str, *, elicit: Elicit) -> str:
        """Book another."""
        return f"{city}, {elicit('seat', 'Where would you like to sit?', Seat).seat}"

    names = PAGE.run()
    function = serve(*names["handler"].handlers, other)
    talk = Conversation(function).call("book_flight", city="Rome")
    stolen = Conversation(function).call("other", city="Rome").tamper(lambda _token: talk.state)
    assert (stolen.status, stolen.error["data"]) == (400, {"reason": "invalid_request_state"})


# ---- Two versions in flight


class Seat(BaseModel):
    seat: str


class Meal(BaseModel):
    meal: str


def make_version(*, reworded: bool = False, booked: list[str] | None = None, name: str = "old") -> LambdaFunction:
    """Write one version of a function; each has its own code, and a log of the steps it ran."""

    def reserve(city: str) -> str:
        (booked if booked is not None else []).append(name)
        return city

    @tool
    def book(city: str, *, elicit: Elicit, step: Step) -> str:
        """Book a flight."""
        run_conversation = step("reserve", reserve, city)
        seat = elicit("seat", "Which seat, please?" if reworded else "Which seat?", Seat).seat
        meal = elicit("meal", "Which meal?", Meal).meal
        return f"{run_conversation}, {seat}, {meal}"

    return serve(book)


def run_conversation(versions: list[LambdaFunction], seed: int, rounds: int = 12) -> tuple[list[str], str]:
    """Hold a conversation in which every round meets one version or the other; what was asked, and how it ended."""
    draw = random.Random(seed)  # noqa: S311 - a weighted alias, not a secret
    answers = {"seat": {"seat": "window"}, "meal": {"meal": "soup"}}
    talk, asked = Conversation(draw.choice(versions)).call(city="Rome"), list[str]()
    for _ in range(rounds):
        if talk.done:
            break
        asked += talk.asked
        talk.upgrade(draw.choice(versions)).accept(**{key: answers[key] for key in talk.asked})
    return asked, talk.text


@pytest.mark.parametrize("seed", range(8))
def test_a_conversation_that_alternates_between_versions_asks_each_question_once(seed: int) -> None:
    assert run_conversation([make_version(), make_version(name="new")], seed) == (
        ["seat", "meal"],
        "Rome, window, soup",
    )


def test_only_a_reworded_question_is_asked_again() -> None:
    old, new = make_version(), make_version(reworded=True)
    talk = Conversation(old).call(city="Rome").upgrade(new).accept(seat={"seat": "window"})
    assert talk.messages == {"seat": "Which seat, please?"}
    talk.accept(seat={"seat": "aisle"})
    assert talk.asked == ["meal"]
    assert talk.accept(meal={"meal": "soup"}).text == "Rome, aisle, soup"


@pytest.mark.parametrize("seed", range(4))
def test_the_new_version_does_not_repeat_a_step_that_the_old_one_recorded(seed: int) -> None:
    booked: list[str] = []
    run_conversation([make_version(booked=booked), make_version(booked=booked, name="new")], seed)
    assert len(booked) == 1


@pytest.mark.parametrize("qualifier", ["", ":live"])
def test_the_endpoint_invokes_the_configured_alias(qualifier: str) -> None:
    lambdas = Lambdas(**{f"book{qualifier}": make_version()})
    offered = catalogs.build(make_version().handlers, "book")
    found = settings.Settings({"MCP_STACK": "local", "MCP_AUTH_MODE": "none", "MCP_QUALIFIER": qualifier})
    door = make_function(found, FrontDoor(offered, found, lambda: lambdas).answer)
    sent = gateways.http_api(
        gateways.http_request(wire.message("tools/call", {"name": "book", "arguments": {"city": "Rome"}}))
    )
    assert door(sent, wire.Context("local_mcp"))["statusCode"] == 200
    assert lambdas.invoked == [f"local_book{qualifier}"]


# ---- Two Regions


class Regions:
    """The same stack in two Regions, under one multi-Region key."""

    def __init__(self) -> None:
        self.first, self.second = StrictKms("eu-west-1"), StrictKms("us-west-2")
        self.primary = self.first.create_key(multi_region=True)
        self.replica = self.first.replicate(self.primary, self.second)

    def deploy(self, *keys: tuple[str, StrictKms]) -> LambdaFunction:
        wrapping = [KmsKey(arn, lambda kms=kms: kms) for arn, kms in keys]  # type: ignore[misc]  # a default binds it
        return serve(book_twice, wrapping=wrapping)


@tool
def book_twice(city: str, *, elicit: Elicit) -> str:
    """Book a flight, after two questions."""
    seat = elicit("seat", "Which seat?", Seat).seat
    return f"{city}, {seat}, {elicit('meal', 'Which meal?', Meal).meal}"


def test_a_conversation_continues_in_another_region() -> None:
    regions = Regions()
    first = regions.deploy((regions.primary, regions.first))
    second = regions.deploy((regions.replica, regions.second))
    talk = Conversation(first).call(city="Rome").upgrade(second).accept(seat={"seat": "window"})
    assert talk.upgrade(first).accept(meal={"meal": "soup"}).text == "Rome, window, soup"
    assert {call.key_id for call in regions.first.calls} == {regions.primary}
    assert {call.key_id for call in regions.second.calls} == {regions.replica}
    assert {arn.rpartition("/")[2] for arn in (regions.primary, regions.replica)} == {"mrk-" + f"{1:032x}"}


def test_a_stack_with_another_name_opens_no_state() -> None:
    regions = Regions()
    with deployed(MCP_STACK="local"):
        talk = Conversation(regions.deploy((regions.primary, regions.first))).call(city="Rome")
    with deployed(MCP_STACK="local-2"):
        talk.upgrade(regions.deploy((regions.replica, regions.second))).accept(seat={"seat": "window"})
    assert (talk.status, talk.error["data"]) == (400, {"reason": "invalid_request_state"})


def test_the_first_key_seals_states_and_every_key_opens_them() -> None:
    regions = Regions()
    old = regions.first.create_key()
    talk = Conversation(regions.deploy((old, regions.first))).call(city="Rome")
    both = regions.deploy((regions.primary, regions.first), (old, regions.first))
    assert talk.upgrade(both).accept(seat={"seat": "window"}).asked == ["meal"]
    only_new = regions.deploy((regions.primary, regions.first))
    assert talk.upgrade(only_new).accept(meal={"meal": "soup"}).text == "Rome, window, soup"
    assert re.fullmatch(r".*key/mrk-\w+", regions.first.calls[-1].key_id or "")
