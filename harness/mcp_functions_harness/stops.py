"""`mcp-functions stop` and `start`: stops that need no deployment, and no healthy stack of CloudFormation.

    server      the API's throttle becomes 0: UpdateStage of API Gateway
    function    the function's reserved concurrency becomes 0, and its worker's: PutFunctionConcurrency of Lambda
    caller      all functions refuse this caller, by a variable: UpdateFunctionConfiguration of Lambda

What AWS had before is kept in a tag of the API or the function, so `start` knows it. samconfig.toml gets the stop too,
where template.yaml has a parameter for it, so a later deployment does not end it.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions_harness import parameter_changes, samconfig, template
from mcp_functions_harness.problems import Problem, first_line

KINDS = ("server", "function", "caller")
STAGE = "$default"  # of an HTTP API that SAM makes
TAG = "mcp-functions-before"  # what AWS had: "50 100", the API's rate and burst, or "10" executions
NO_LIMIT = "none"  # of a function: it had no executions reserved
STOPPED_FUNCTIONS, STOPPED_CALLERS, LOG_CALLERS = "MCP_STOPPED_FUNCTIONS", "MCP_STOPPED_CALLERS", "MCP_LOG_CALLERS"
CALLER = re.compile(r"\d{4}-\d\d\.[\w-]{16}")
PARAMETERS = {"server": "RequestsPerSecond", "function": "StoppedFunctions", "caller": "StoppedCallers"}
PARTLY = {
    "server": "Function URLs, workers and the sign-in of oauth go on",
    "function": "Its calls get 503 from the endpoint and 429 or 500 at /mcp/<folder>; its workers begin no round",
    "caller": "Warm environments of a function are replaced by ones that refuse the caller",
}
HALFWAY = (
    "not done for {names}. What the lines above say of other functions is done and stays, and samconfig.toml is as"
    " before: repeat the command when AWS allows the call"
)
UNWRITTEN = (
    "template.yaml has no parameter {parameter}, so a deployment that changes the same resource ends the stop; "
    "mcp-functions add stops writes one"
)


class _Api(NamedTuple):
    id: str
    tags: Mapping[str, str]


class Stops:
    """What may be stopped of one deployed stack. No method calls CloudFormation."""

    def __init__(self, stack: str, session: boto3.Session) -> None:
        """Make no call yet. The stack's name is in the names of its API and its functions."""
        self._stack = stack
        self._session: Any = session  # boto3's clients are typed by other packages
        self._lambda: Any = self._session.client("lambda")
        self._gateway: Any = self._session.client("apigatewayv2")
        self.refused: list[str] = []  # the functions for which AWS refused a call
        self.throttle = ("", "")  # the rate and burst that `start_server` has restored

    def stop_server(self) -> Iterator[str]:
        """Admit no request at the API."""
        api = self._api()
        rate, burst = self._throttle(api)
        if (rate, burst) == ("0", "0"):
            yield f"API Gateway admits no request to {self._stack} already"
            return
        self._gateway.tag_resource(ResourceArn=self._api_arn(api), Tags={TAG: f"{rate} {burst}"})
        self._set_throttle(api, 0, 0)
        yield f"API Gateway admits no request to {self._stack}; before, {rate} a second and {burst} at once"

    def start_server(self) -> Iterator[str]:
        """Admit requests as before the stop."""
        api = self._api()
        before = str(api.tags.get(TAG, ""))
        if not before:
            remedy = "mcp-functions set … RequestsPerSecond= --now sets its rate"
            raise Problem(f"mcp-functions did not stop {self._stack}; {remedy}")
        rate, burst = before.split()
        self._set_throttle(api, float(rate), int(burst))
        self.throttle = (rate, burst)
        self._gateway.untag_resource(ResourceArn=self._api_arn(api), TagKeys=[TAG])
        yield f"API Gateway admits {rate} requests a second, and {burst} at once"

    def stop_function(self, folder: str) -> Iterator[str]:
        """Run no invocation of a function, nor of its worker."""
        for name in self._with_worker(folder):
            yield from self._tried(name, self._stop(name))

    def _stop(self, name: str) -> Iterator[str]:
        reserved = self._lambda.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        if reserved != 0:
            arn = self._lambda.get_function_configuration(FunctionName=name)["FunctionArn"]
            self._lambda.tag_resource(Resource=arn, Tags={TAG: NO_LIMIT if reserved is None else str(reserved)})
            self._lambda.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        yield f"Lambda runs no invocation of {name}"

    def start_function(self, folder: str) -> Iterator[str]:
        """Run invocations as before the stop."""
        for name in self._with_worker(folder):
            yield from self._tried(name, self._start(name))
        # A deployment may have written it.
        yield from self._write(STOPPED_FUNCTIONS, folder, listed=False)

    def _start(self, name: str) -> Iterator[str]:
        arn = self._lambda.get_function_configuration(FunctionName=name)["FunctionArn"]
        before = self._lambda.list_tags(Resource=arn)["Tags"].get(TAG)
        if before is None:
            yield f"mcp-functions did not stop {name}"
            return
        if before == NO_LIMIT:
            self._lambda.delete_function_concurrency(FunctionName=name)
            yield f"Lambda runs {name} again"
        else:
            self._lambda.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=int(before))
            yield f"Lambda runs {name} again, at most {before} at once"
        self._lambda.untag_resource(Resource=arn, TagKeys=[TAG])

    def _tried(self, name: str, calls: Iterator[str]) -> Iterator[str]:
        """Make the calls for one function. If AWS refuses one, the other functions go on: a stop is an emergency."""
        try:
            yield from calls
        except (BotoCoreError, ClientError) as error:
            self.refused.append(name)
            yield f"AWS refused a call for {name}: {first_line(error)}"

    def stop_caller(self, caller: str) -> Iterator[str]:
        """Let every function refuse a caller."""
        for name, variables in self._variables().items():
            if not variables.get(LOG_CALLERS):
                remedy = "mcp-functions set … LogCallers=on --now"
                raise Problem(f"{name} knows no callers by name, so nobody is stopped: {remedy}")
        yield from self._write(STOPPED_CALLERS, caller, listed=True)

    def start_caller(self, caller: str) -> Iterator[str]:
        """Let every function serve a caller again."""
        yield from self._write(STOPPED_CALLERS, caller, listed=False)

    def _write(self, variable: str, item: str, *, listed: bool) -> Iterator[str]:
        """Add an item to a variable with commas, of each function that differs; or remove it."""
        for name, variables in self._variables().items():
            items = [each for each in variables.get(variable, "").split(",") if each]
            if (item in items) is listed:
                continue
            new = [*items, item] if listed else [each for each in items if each != item]
            yield from self._tried(name, self._set_variables(name, {**variables, variable: ",".join(new)}, variable))

    def _set_variables(self, name: str, variables: dict[str, str], changed: str) -> Iterator[str]:
        self._lambda.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
        yield f"{name} has {changed}={variables[changed]}"
        for alias in self._lambda.list_aliases(FunctionName=name)["Aliases"]:
            yield f"but its alias {alias['Name']} serves version {alias['FunctionVersion']}, which is as before"

    def _variables(self) -> dict[str, dict[str, str]]:
        found = {name: self._lambda.get_function_configuration(FunctionName=name) for name in self._functions()}
        return {name: configured.get("Environment", {}).get("Variables", {}) for name, configured in found.items()}

    def _api(self) -> _Api:
        pages = self._gateway.get_paginator("get_apis").paginate()
        apis = [api for page in pages for api in page["Items"] if api["Name"] == self._stack]
        if len(apis) != 1:
            where = self._session.region_name
            raise Problem(f"there are {len(apis)} HTTP APIs named {self._stack}, not one, in {where}")
        return _Api(apis[0]["ApiId"], apis[0].get("Tags", {}))

    def _api_arn(self, api: _Api) -> str:
        region = self._session.region_name
        return f"arn:{self._session.get_partition_for_region(region)}:apigateway:{region}::/apis/{api.id}"

    def _throttle(self, api: _Api) -> tuple[str, str]:
        settings = self._gateway.get_stage(ApiId=api.id, StageName=STAGE).get("DefaultRouteSettings", {})
        return f"{settings.get('ThrottlingRateLimit', 0):g}", f"{settings.get('ThrottlingBurstLimit', 0)}"

    def _set_throttle(self, api: _Api, rate: float, burst: int) -> None:
        settings = {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
        self._gateway.update_stage(ApiId=api.id, StageName=STAGE, DefaultRouteSettings=settings)

    def _functions(self) -> list[str]:
        """Return the names of all functions; a stack's name has no "_", so no other stack's begin with these words."""
        pages = self._lambda.get_paginator("list_functions").paginate()
        names = [each["FunctionName"] for page in pages for each in page["Functions"]]
        found = sorted(name for name in names if name.startswith(f"{self._stack}_"))
        if not found:
            raise Problem(f"there is no function whose name begins with {self._stack}_")
        return found

    def _with_worker(self, folder: str) -> list[str]:
        own, worker = f"{self._stack}_{folder}", f"{self._stack}_{folder}-worker"
        names = [name for name in self._functions() if name in {own, worker}]
        if own not in names:
            raise Problem(f"there is no function {own}")
        return names


@dataclass(frozen=True)
class Target:
    """What is stopped or started."""

    kind: str  # one of `KINDS`
    name: str  # the function's folder, or the caller's pseudonym; "" for the server

    def check(self) -> None:
        """Check the name.

        Raises:
            Problem: it is missing, too much, or no name of a caller.
        """
        if (self.kind == "server") is bool(self.name):
            raise Problem("mcp-functions stop server ENV, stop function ENV FOLDER, or stop caller ENV CALLER")
        if self.kind == "caller" and not CALLER.fullmatch(self.name):
            raise Problem("a caller is named as in the log, like 2026-11.fbIZn1rBHzMDjVTr")

    def call(self, stops: Stops, *, stopped: bool) -> Iterator[str]:
        """Make the calls of a stop, or of its end."""
        if self.kind == "server":
            return stops.stop_server() if stopped else stops.start_server()
        if self.kind == "function":
            return stops.stop_function(self.name) if stopped else stops.start_function(self.name)
        return stops.stop_caller(self.name) if stopped else stops.start_caller(self.name)


def change(directory: Path, environment: str, target: Target, *, stopped: bool, now: bool) -> Iterator[str]:
    """Stop or start something, and yield texts for the terminal. Without `now`, only samconfig.toml changes.

    Raises:
        Problem: a name is wrong, or AWS refuses a call.
    """
    target.check()
    settings = samconfig.Environment(directory / samconfig.FILE, environment)
    throttle = ("", "")  # the defaults of the template
    if now:
        throttle = yield from _call_aws(settings, target, stopped=stopped)
    parameter = PARAMETERS[target.kind]
    if parameter not in template.read(directory / template.FILE)["Parameters"]:
        missing = UNWRITTEN.format(parameter=parameter)
        if not now:
            raise Problem(missing)
        yield missing
        return
    words = _parameters(target, settings.parameters, stopped=stopped, throttle=throttle)
    yield from parameter_changes.change(directory, environment, words)
    if now:
        yield "That deployment is not needed now: the next one keeps what these calls did"


def _call_aws(
    settings: samconfig.Environment, target: Target, *, stopped: bool
) -> Generator[str, None, tuple[str, str]]:
    """Call AWS, and return the rate and burst that the API has after a start."""
    try:
        session = boto3.Session(profile_name=settings.setting("profile"), region_name=settings.setting("region"))
        stops = Stops(str(settings.setting("stack_name")), session)
        yield from target.call(stops, stopped=stopped)
    except (BotoCoreError, ClientError) as error:
        raise Problem(f"AWS refused a call, and samconfig.toml is as before: {first_line(error)}") from error
    if stops.refused:
        raise Problem(HALFWAY.format(names=", ".join(stops.refused)))
    if stopped:
        yield PARTLY[target.kind]
    return stops.throttle


def _parameters(target: Target, old: samconfig.Parameters, *, stopped: bool, throttle: tuple[str, str]) -> list[str]:
    """Return the words of `mcp-functions set` that keep a stop, or its end, in later deployments."""
    if target.kind == "server":
        rate, burst = ("0", "0") if stopped else throttle
        return [f"RequestsPerSecond={rate}", f"RequestBurst={burst}"]
    parameter = PARAMETERS[target.kind]
    others = [each for each in old.get(parameter, "").split(",") if each not in {"", target.name}]
    return [f"{parameter}={','.join([*others, target.name] if stopped else others)}"]
