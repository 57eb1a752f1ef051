"""`mcp-functions open TOKEN` shows the content of a token and each reason for which a server refuses it."""

from __future__ import annotations

import base64
import io
import json
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import boto3
import pytest

from mcp_functions.observability.lines import digest
from mcp_functions.protocol import errors
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import bind_request
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.request_state import RequestStates
from mcp_functions_harness import Harness, environment
from mcp_functions_harness.command import run as main
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.inspection import explain as opening
from mcp_functions_harness.inspection import key_source
from mcp_functions_harness.inspection.claims_check import RefusedRequest
from mcp_functions_harness.inspection.explain import explain
from mcp_functions_harness.inspection.texts import WHY
from mcp_functions_harness.loopback import Loopback
from tests.harness.conftest import GREET, write_functions
from tests.support import wire
from tests.support.reasons import CLAIM_REASONS, TOKEN_REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_functions_harness.inspection.explain import Explanation
    from mcp_functions_harness.inspection.key_source import KeySource

NOW = 1_767_300_000.0
SCOPE = Scope("local/greet", "local", "1")
AUDIENCE = "local/greet/local"
ALICE = Principal("https://issuer.example", "alice", "client")
BOB = ALICE._replace(sub="bob")
PARAMS: dict[str, Any] = {"name": "greet", "arguments": {"city": "Rome", "id": 7}}
MARKER = "planted-marker"
RECORD = {
    "answers": {"who": {"print": {"action": "accept", "content": {"name": MARKER}}}},
    "steps": {"reserve": ["digest", MARKER, 12]},
    "began": 1_767_300_000_000,
    "state": f'{{"draft":"{MARKER}"}}',
}


FLOW = "a2V5IG9mIGEgY29udmVyc2F0aW9u"  # a conversation's name, which no line may hold


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeySource]:
    state_dir = tmp_path_factory.mktemp("state")
    keyfile.load(state_dir)
    with key_source.local_key(state_dir, [SCOPE], SCOPE) as held:
        yield held


class Sealing(NamedTuple):
    """A function that leaves states, and what it thinks of those that come back."""

    holder: KeySource
    scope: Scope = SCOPE
    lifetime: int = 600
    anonymous: bool = False

    def states(self, now: float) -> RequestStates:
        envelope = Envelope(Keyring(self.holder.wrappings, self.scope, now=lambda: now), max_age=self.lifetime)
        return RequestStates(envelope, now=lambda: now, lifetime_seconds=self.lifetime, anonymous=self.anonymous)

    def seal(self, now: float = NOW, principal: Principal | None = ALICE) -> str:
        bound = bind_request(f"{self.scope.service}/{self.scope.stage}", "tools/call", PARAMS, principal)
        return self.states(now).seal(bound, None, asked={"when": "print"}, record=RECORD, flow=FLOW)

    def refuses(self, token: str, now: float, params: dict[str, Any], principal: Principal | None) -> str | None:
        """Say why the shipped code refuses a token; None if it does not."""
        bound = bind_request(f"{self.scope.service}/{self.scope.stage}", "tools/call", params, principal)
        try:
            self.states(now).open(token, bound)
        except InvalidRequestState as refused:
            return str(refused.reason)
        return None


def refused_request(
    params: dict[str, Any] = PARAMS, principal: Principal | None = ALICE, answer_within: int | None = None
) -> RefusedRequest:
    return {
        "method": "tools/call",
        "target": params["name"],
        "arguments": params.get("arguments"),
        "principal": principal,
        "answer_within": answer_within,
    }


def line(explained: Explanation, label: str) -> str:
    (found,) = [line for line in explained.lines if line.startswith(f"{label} ")]
    return found.removeprefix(label).strip()


# ---- Valid tokens


def test_open_shows_every_claim_of_a_valid_token(holder: KeySource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    explained = explain(Sealing(holder).seal(), holder, refused_request(), now=NOW + 90)
    assert explained.reasons == ()
    assert line(explained, "scope") == "local/greet, stage local, generation 1"
    assert line(explained, "audience") == AUDIENCE
    assert line(explained, "method") == "tools/call (as in the request)"
    assert line(explained, "target") == "greet (as in the request)"
    assert line(explained, "arguments").endswith("(as in the request)")
    assert line(explained, "principal").endswith("(as in the request)")
    assert line(explained, "sealed").endswith("2 min ago")
    assert line(explained, "expires").endswith("in 8 min")
    assert line(explained, "conversation").endswith("in 58 min")
    assert line(explained, "conversation").startswith(f"flow {digest(FLOW)} in the log, "), "not the secret name"
    assert line(explained, "round") == "1 of 16"
    assert line(explained, "asked") == "when"
    assert line(explained, "answers") == "who"
    assert line(explained, "steps") == "reserve"
    assert line(explained, "state") == "draft"
    assert str(explained).endswith("not refused, as far as it was compared")


def test_open_shows_times_with_their_distance_from_now(holder: KeySource) -> None:
    explained = explain(Sealing(holder).seal(), holder, refused_request(), now=NOW)
    assert line(explained, "sealed").startswith("20")
    assert line(explained, "sealed").endswith("in 0 s") or line(explained, "sealed").endswith("0 s ago")


def test_open_compares_only_the_given_values(holder: KeySource) -> None:
    explained = explain(Sealing(holder).seal(), holder, RefusedRequest(), now=NOW)
    assert explained.reasons == ()
    assert str(explained).count("(not compared)") == 4


def test_open_shows_answers_and_state_only_on_request_and_never_keys(holder: KeySource) -> None:
    token = Sealing(holder).seal()
    hidden, told = (explain(token, holder, refused_request(), now=NOW, show_state=show) for show in (False, True))
    assert MARKER not in str(hidden)
    assert str(told).count(MARKER) == 3
    assert f'"draft": "{MARKER}"' in str(told)
    key = Keyring(holder.wrappings, SCOPE, now=lambda: NOW).key_to_seal().plaintext
    for written in (key.hex(), base64.b64encode(key).decode()):
        assert written not in str(told)


def test_open_shows_that_a_state_has_no_principal(holder: KeySource) -> None:
    explained = explain(
        Sealing(holder, anonymous=True).seal(principal=None), holder, refused_request(principal=None), now=NOW
    )
    assert line(explained, "principal") == "nobody (as in the request)"
    assert explained.reasons == ()


# ---- Invalid tokens: the reason that the server logs, and any other reasons

DAY = 86_400.0
OTHER_REQUESTS = {**PARAMS, "arguments": {"city": "Rome", "id": 8}}
CASES: list[tuple[str, float, dict[str, Any], Principal | None]] = [
    ("expired", NOW + 601, PARAMS, ALICE),
    ("born_past", NOW + DAY, PARAMS, ALICE),
    ("born_future", NOW - 61, PARAMS, ALICE),
    ("principal", NOW, PARAMS, BOB),
    ("arguments", NOW, OTHER_REQUESTS, ALICE),
    ("target", NOW, {**PARAMS, "name": "other"}, ALICE),
]


@pytest.mark.parametrize(("reason", "at", "params", "principal"), CASES, ids=[case[0] for case in CASES])
def test_open_names_the_reason_that_the_server_logs(
    holder: KeySource, reason: str, at: float, params: dict[str, Any], principal: Principal | None
) -> None:
    sealing = Sealing(holder)
    token = sealing.seal()
    explained = explain(token, holder, refused_request(params, principal), now=at)
    assert sealing.refuses(token, at, params, principal) == explained.reasons[0] == reason
    assert f"refused: {reason}: {WHY[reason]}" in str(explained)


def test_open_names_every_reason_and_not_only_the_first(holder: KeySource) -> None:
    explained = explain(Sealing(holder).seal(), holder, refused_request(OTHER_REQUESTS, BOB), now=NOW + 601)
    assert explained.reasons == ("principal", "arguments", "expired")


def test_the_contents_of_a_token_that_is_far_too_old_are_still_shown(holder: KeySource) -> None:
    explained = explain(Sealing(holder).seal(), holder, refused_request(), now=NOW + 400 * DAY)
    assert explained.reasons == ("born_past", "expired")
    assert line(explained, "answers") == "who"


def test_open_names_a_shortened_lifetime_as_the_reason(holder: KeySource) -> None:
    explained = explain(Sealing(holder).seal(), holder, refused_request(answer_within=60), now=NOW)
    assert explained.reasons == ("lifetime",)


def test_open_names_the_reason_of_the_server_for_every_change_of_a_token(holder: KeySource) -> None:
    sealing, states = Sealing(holder), set[str]()
    token = sealing.seal()
    for at in range(0, len(token), 7):
        changed = token[:at] + ("B" if token[at] == "A" else "A") + token[at + 1 :]
        explained = explain(changed, holder, refused_request(answer_within=600), now=NOW)
        assert explained.reasons[:1] == (sealing.refuses(changed, NOW, PARAMS, ALICE),), at
        states.update(explained.reasons)
    assert {"prefix", "wrapped_key", "commitment", "tag"} <= states


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "prefix"),
        ("not a token", "prefix"),
        ("{token}=", "encoding"),
        ("{token}\n", "encoding"),
        ("{token:.60}", "truncated"),
        ("ks1.AQ", "truncated"),
        ("ks1.AgAA{rest}", "suite"),
        ("ks1.AQIA{rest}", "key_kind"),
    ],
)
def test_open_recognises_a_malformed_token_without_a_key(holder: KeySource, text: str, reason: str) -> None:
    token = Sealing(holder).seal()
    changed = text.format(token=token, rest=token[8:])
    assert opening.explain_public_part(changed, now=NOW).reasons == (reason,)
    assert explain(changed, holder, refused_request(), now=NOW).reasons == (reason,)


def test_open_shows_a_token_that_is_too_long_for_a_server(holder: KeySource) -> None:
    envelope = Envelope(Keyring(holder.wrappings, SCOPE, now=lambda: NOW), max_chars=200_000)
    states = RequestStates(envelope, now=lambda: NOW)
    bound = bind_request(AUDIENCE, "tools/call", PARAMS, ALICE)
    token = states.seal(bound, None, asked={}, record={"state": {"long": "x" * 50_000}})
    assert explain(token, holder, refused_request(), now=NOW).reasons == ("length",)


def test_open_shows_a_token_of_another_function_as_refused(holder: KeySource) -> None:
    elsewhere = SCOPE._replace(service="local/other")
    both = holder._replace(scopes=[SCOPE, elsewhere])
    explained = explain(Sealing(holder, elsewhere).seal(), both, refused_request(), now=NOW)
    assert explained.reasons == ("wrapped_key",)
    assert line(explained, "scope") == "local/other, stage local, generation 1, not that of the request"


@pytest.mark.parametrize("scope", [SCOPE._replace(stage="prod"), SCOPE._replace(generation="2")])
def test_open_cannot_decrypt_a_token_of_another_stage_or_generation(holder: KeySource, scope: Scope) -> None:
    explained = explain(Sealing(holder, scope).seal(), holder, refused_request(), now=NOW)
    assert explained.reasons == ("wrapped_key",)
    assert "generation" in str(explained)
    assert AUDIENCE not in str(explained)


def test_open_cannot_decrypt_a_token_under_another_key(holder: KeySource, tmp_path: Path) -> None:
    keyfile.load(tmp_path)
    with key_source.local_key(tmp_path, [SCOPE], None) as other:
        token = Sealing(other).seal()
    assert explain(token, holder, refused_request(), now=NOW).reasons == ("kek_unknown",)


def test_open_reports_a_payload_without_claims(holder: KeySource) -> None:
    token = Envelope(Keyring(holder.wrappings, SCOPE, now=lambda: NOW)).seal(b'{"v":2}')
    assert explain(token, holder, refused_request(), now=NOW).reasons == ("claims",)


def test_every_reason_of_the_server_is_explained() -> None:
    unexplained = (TOKEN_REASONS | CLAIM_REASONS) - WHY.keys()
    assert unexplained == {"kek_retired", "codec"}  # neither can be met here: one key, our own codec


# ---- The command


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run a project's harness for a moment; return where it ran, and what its function left for its client."""
    root = tmp_path_factory.mktemp("project")
    write_functions(root / "functions", {"add/app.py": "handler = lambda event, context: {}", "greet/app.py": GREET})
    message = wire.message("tools/call", {"name": "greet", "arguments": {}})
    with Harness(root / "functions", state_dir=root / ".mcp-functions") as harness:
        address = urlsplit(harness.url)
        connection = HTTPConnection(address.netloc, timeout=60)
        connection.request("POST", f"{address.path}/greet", json.dumps(message), wire.headers(message))
        answered = json.loads(connection.getresponse().read())
        connection.close()
    return root, str(answered["result"]["requestState"])


@pytest.fixture
def token(sealed: tuple[Path, str]) -> str:
    return sealed[1]


@pytest.fixture
def run(
    sealed: tuple[Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run the command where the harness has run."""

    def command(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = main(["open", *words])
        return Ran(code, *capsys.readouterr())

    monkeypatch.chdir(sealed[0])
    return command


def problem(ran: Ran) -> str:
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.startswith("mcp-functions: ")
    return ran.err


def test_open_explains_a_token_of_the_harness_in_its_project(run: Callable[..., Ran], token: str) -> None:
    ran = run("--arguments", "{}", "--nobody", token)
    assert (ran.code, ran.err) == (0, "")
    assert "scope         local/greet, stage local, generation 1" in ran.out
    assert "asked         who" in ran.out


def test_a_token_is_read_from_stdin(run: Callable[..., Ran], token: str) -> None:
    ran = run("-", stdin=f"{token}\n")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == run(token).out.splitlines()[0]


def test_open_prints_a_reason_to_refuse_and_exits_with_1(run: Callable[..., Ran], token: str) -> None:
    ran = run("--arguments", '{"city": "Rome"}', "--principal", *ALICE, token)
    assert ran.code == 1
    refused = [line.split(":")[1].strip() for line in ran.out.splitlines() if line.startswith("refused: ")]
    assert refused == ["principal", "arguments"]


def test_a_token_of_another_function_names_that_function(run: Callable[..., Ran], token: str) -> None:
    ran = run("--function", "add", token)
    assert ran.code == 1
    assert "scope         local/greet, stage local, generation 1, not that of the request" in ran.out


def test_open_recognises_a_text_that_is_no_token_without_a_key(run: Callable[..., Ran]) -> None:
    assert run("hello") == Ran(1, f"refused: prefix: {WHY['prefix']}\n", "")


def test_without_a_key_open_shows_only_public_fields(
    run: Callable[..., Ran], token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ran = run("--function", "greet", token)
    assert "there is no .mcp-functions/kms.json" in problem(ran)
    assert ran.out.count("\n") == 3
    assert not (tmp_path / "elsewhere" / ".mcp-functions").exists()


@pytest.mark.parametrize("arguments", ["{", "{'city': 1}", '{"a": NaN}', "[" * 70 + "]" * 70])
def test_open_reports_arguments_that_are_no_json_in_one_line(
    run: Callable[..., Ran], token: str, arguments: str
) -> None:
    assert "--arguments" in problem(run("--arguments", arguments, token))


def test_open_reports_a_folder_without_functions_in_one_line(run: Callable[..., Ran], token: str) -> None:
    assert "there is no folder nowhere" in problem(run("--functions", "nowhere", token))


# ---- With a key of AWS


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, sealed: tuple[Path, str]) -> Iterator[Any]:
    """Yield a client of a KMS that answers as AWS's does, whose key sealed `token`; and the user's environment."""
    with Loopback(max_body=MAX_REQUEST) as server:
        api = KmsApi(keyfile.load(sealed[0] / ".mcp-functions"))
        server.start(api.answer)
        named = environment.CREDENTIALS | environment.endpoints(kms=server.url, invoke=server.url)
        for name, value in named.items():
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
        client = boto3.client("kms")
        yield client
        client.enable_key(KeyId=api.arn)
        client.close()


def arn_of(client: Any) -> str:  # noqa: ANN401 - a boto3 client
    return str(client.list_keys()["Keys"][0]["KeyArn"])


def test_open_decrypts_with_an_aws_key_given_its_arn_and_scope(run: Callable[..., Ran], token: str, aws: Any) -> None:  # noqa: ANN401
    ran = run("--key", arn_of(aws), "--service", "local/greet", "--stage", "local", token)
    assert (ran.code, ran.err) == (0, "")
    assert "asked         who" in ran.out
    assert run("--key", arn_of(aws), "--service", "local/greet", token).code == 1  # its stage is not prod


def test_open_reports_a_disabled_key_in_one_line_with_its_fix(run: Callable[..., Ran], token: str, aws: Any) -> None:  # noqa: ANN401
    aws.disable_key(KeyId=arn_of(aws))
    message = problem(run("--key", arn_of(aws), "--service", "local/greet", "--stage", "local", token))
    assert "kms:DisabledException" in message
    assert "kms:Decrypt" in message


def test_open_reports_an_unreachable_kms_in_one_line(
    run: Callable[..., Ran],
    token: str,
    aws: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    message = problem(run("--key", arn_of(aws), "--service", "local/greet", "--stage", "local", token))
    assert "KMS does not answer (kms:EndpointConnectionError)" in message


def test_open_reports_a_key_without_a_scope_in_one_line(run: Callable[..., Ran], token: str) -> None:
    assert "--service" in problem(run("--key", "arn:aws:kms:eu-west-1:111122223333:key/abc", token))


@pytest.mark.parametrize("arn", ["alias/mine", "abc", "arn:aws:kms:eu-west-1:111122223333:alias/mine"])
def test_open_reports_an_invalid_key_arn_in_one_line(run: Callable[..., Ran], token: str, arn: str) -> None:
    assert "give the ARN of a key" in problem(run("--key", arn, "--service", "local/greet", token))


def test_a_client_gets_the_same_message_for_every_reason_that_open_explains() -> None:
    wire = {errors.InvalidRequestState(reason).message for reason in WHY}
    assert wire == {"Invalid or expired requestState"}
