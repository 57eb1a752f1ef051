"""Single use: of every round of a conversation one request runs, once, and who asks again hears the same."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Step, prompt, resource, serve, tool
from mcp_functions import store as tables
from mcp_functions.local.doubles import dynamodb as local
from mcp_functions.local.environment import TABLE
from mcp_functions.testing import Conversation, deployed
from tests.support import wire
from tests.support.single_use import LATER, NO, NOTE, REFUSED, SECONDS, YES, Approval, World, said, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.http.gateway import LambdaFunction


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(tables, "make_call", lambda: world.table)
    return world


@pytest.fixture
def pay(world: World) -> LambdaFunction:
    return world.container()


def asked(world: World, pay: LambdaFunction) -> str:
    """Go as far as the question, and return the state that came with it."""
    first = world.ask(pay)
    assert said(first) == []
    question = world.ask(pay, state_of(first))
    assert said(question) == ["approval"]
    return state_of(question)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Read the log, but for what every start and every good answer says."""
    return [line for line in caplog.messages if not line.startswith(("AuthMode is none", "answered: "))]


# A conversation as it should be


def test_a_first_round_ends_before_its_first_step(world: World, pay: LambdaFunction) -> None:
    for _ in range(3):
        assert said(world.ask(pay)) == []
    assert (world.looked_up, world.table.calls) == (0, [])


def test_every_round_is_claimed_before_it_runs_and_written_down_before_it_is_answered(
    world: World, pay: LambdaFunction
) -> None:
    state = asked(world, pay)
    assert world.table.calls == ["GetItem", "PutItem", "PutItem"]
    paid = world.ask(pay, state, YES)
    assert said(paid) == ["note"]
    assert said(world.ask(pay, state_of(paid), NOTE)) == "transfer 1: thanks"
    assert world.table.calls == ["GetItem", "PutItem", "PutItem"] * 3
    assert len(world.table.items) == 1


def test_a_step_runs_once_in_a_repeated_round(world: World, pay: LambdaFunction) -> None:
    state = asked(world, pay)
    first = world.ask(pay, state, YES)
    for again in (pay, world.container()):
        assert world.ask(again, state, YES, id="another", meta={"progressToken": 1}) == {
            **(first or {}),
            "id": "another",
        }
    assert (world.looked_up, world.calls) == (1, 1)


def test_an_item_lives_as_long_as_any_state_of_its_conversation(world: World, pay: LambdaFunction) -> None:
    began = world.now
    asked(world, pay)
    (item,) = world.table.items.values()
    assert item["key"]["S"].startswith("local/pay/conversation/-/")
    assert int(item["expires"]["N"]) == began + 6 * 86_400 + 120


# Rewinding, forking, reordering


def test_other_answers_to_the_same_question_are_refused(world: World, pay: LambdaFunction) -> None:
    state = asked(world, pay)
    world.ask(pay, state, YES)
    for other in (NO, {}, None, {**YES, "more": {"action": "cancel"}}):
        assert said(world.ask(pay, state, other)) == REFUSED
    assert world.calls == 1


def test_a_round_that_is_over_does_not_come_back(
    world: World, pay: LambdaFunction, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    state = asked(world, pay)
    paid = world.ask(pay, state, YES)
    world.ask(pay, state_of(paid), NOTE)
    assert said(world.ask(pay, state, YES)) == REFUSED
    assert said(world.ask(pay, state, NO)) == REFUSED
    assert logged(caplog) == ["refused: -32602 used_rewound"] * 2
    assert said(world.ask(pay, state_of(paid), NOTE)) == "transfer 1: thanks"
    assert world.calls == 1


def test_two_conversations_are_two_payments(world: World, pay: LambdaFunction) -> None:
    for _ in range(2):
        world.ask(pay, asked(world, pay), YES)
    assert list(world.transfers.values()) == [75, 75]


def test_reject_refuses_even_the_same_request(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pay = world.container("reject")
    state = asked(world, pay)
    paid = world.ask(pay, state, YES)
    assert said(world.ask(pay, state, YES)) == REFUSED
    assert logged(caplog) == ["refused: -32602 used_again"]
    assert said(world.ask(pay, state_of(paid), NOTE)) == "transfer 1: thanks"


def test_with_reject_no_answer_is_kept(world: World) -> None:
    kept: list[Any] = []
    seal = world.boxes.seal
    world.boxes.seal = lambda payload, /: kept.append(payload) or seal(payload)  # type: ignore[func-returns-value, method-assign]
    pay = world.container("reject")
    paid = world.ask(pay, asked(world, pay), YES)
    world.ask(pay, state_of(paid), NOTE)
    assert b"transfer 1: thanks" not in b"".join(kept)


# Races


def test_one_of_two_simultaneous_requests_runs_and_both_get_its_response(world: World, pay: LambdaFunction) -> None:
    state, both = asked(world, pay), Barrier(2)
    containers = [world.container(), world.container()]
    for container in containers:
        world.ask(container)  # warm

    def race(container: LambdaFunction) -> Any:  # noqa: ANN401 - whatever it says
        both.wait()
        return said(world.ask(container, state, YES))

    with ThreadPoolExecutor(2) as pool:
        heard = list(pool.map(race, containers))
    assert ["note"] in heard
    assert all(answer in (["note"], LATER) for answer in heard)
    assert [said(world.ask(container, state, YES)) for container in containers] == [["note"], ["note"]]
    assert world.calls == 1


def test_a_request_during_a_running_round_is_told_to_retry(
    world: World, pay: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, rival, heard = asked(world, pay), world.container(), list[Any]()
    transfer = world.transfer

    def interrupted(euros: int, key: str) -> str:
        heard.extend(said(world.ask(rival, state, answers)) for answers in (YES, NO))
        return transfer(euros, key)

    monkeypatch.setattr(world, "transfer", interrupted)
    assert said(world.ask(world.container(), state, YES)) == ["note"]
    assert heard == [LATER, REFUSED]
    assert world.calls == 1


# Workers that die


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_round_whose_worker_died_continues_after_its_lease(world: World, pay: LambdaFunction, when: str) -> None:
    state = asked(world, pay)
    world.kill = when
    assert world.ask(pay, state, YES) is None
    again = world.container()
    assert said(world.ask(again, state, YES)) == LATER
    world.now += SECONDS + 2
    assert said(world.ask(again, state, NO)) == REFUSED  # a payment may have been made
    assert said(world.ask(again, state, YES)) == ["note"]
    assert len(world.transfers) == 1
    assert world.calls == (1 if when == "before" else 2)  # under the same key


def test_a_worker_that_was_believed_dead_is_not_heard(
    world: World, pay: LambdaFunction, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    state, heir, heard = asked(world, pay), world.container(), list[Any]()
    transfer = world.transfer

    def slow(euros: int, key: str) -> str:
        monkeypatch.setattr(world, "transfer", transfer)
        world.now += SECONDS + 2
        heard.append(world.ask(heir, state, YES))
        return transfer(euros, key)

    monkeypatch.setattr(world, "transfer", slow)
    assert said(world.ask(world.container(), state, YES)) == LATER
    assert caplog.messages[-1] == "refused: -32603 used_overtaken"
    assert said(heard[0]) == ["note"]
    assert world.ask(pay, state, YES) == heard[0]
    assert len(world.transfers) == 1


def test_a_function_that_fails_lets_its_round_go(
    world: World, pay: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, transfer = asked(world, pay), world.transfer

    def broken(euros: int, key: str) -> str:
        transfer(euros, key)
        monkeypatch.setattr(world, "transfer", transfer)
        raise OSError

    monkeypatch.setattr(world, "transfer", broken)
    again = world.container()
    assert "failed unexpectedly" in said(world.ask(again, state, YES))
    assert said(world.ask(again, state, NO)) == REFUSED
    assert said(world.ask(again, state, YES)) == ["note"]
    assert len(world.transfers) == 1


# The table in trouble


@pytest.mark.parametrize("fault", ["throttled", "unanswered", "lost"])
def test_while_the_table_is_out_nothing_is_done(world: World, pay: LambdaFunction, fault: Any) -> None:  # noqa: ANN401
    state = asked(world, pay)
    world.faults = [fault] * 9
    assert said(world.ask(pay, state, YES)) == LATER
    assert world.calls == 0
    world.faults, world.now = [], world.now + SECONDS + 2
    assert said(world.ask(pay, state, YES)) == ["note"]
    assert world.calls == 1


def test_a_table_that_denies_is_the_operators_work(
    world: World, pay: LambdaFunction, caplog: pytest.LogCaptureFixture
) -> None:
    state = asked(world, pay)
    world.faults = ["denied"]
    assert said(world.ask(pay, state, YES)) == {"code": -32603, "message": "Internal error"}
    assert logged(caplog) == ["refused: -32603 table:AccessDeniedException"]
    assert world.calls == 0


def test_a_stored_claim_without_a_response_counts(world: World, pay: LambdaFunction) -> None:
    state = asked(world, pay)
    world.faults = [None, "lost"]
    assert said(world.ask(pay, state, YES)) == ["note"]
    assert world.calls == 1


def test_an_answer_that_cannot_be_written_down_is_not_given(world: World, pay: LambdaFunction) -> None:
    state = asked(world, pay)
    world.faults = [None, None, "throttled", "throttled"]
    assert said(world.ask(pay, state, YES)) == LATER
    assert said(world.ask(pay, state, NO)) == REFUSED
    world.now += SECONDS + 2
    assert said(world.ask(pay, state, YES)) == ["note"]
    assert len(world.transfers) == 1


def test_an_unreadable_item_does_not_allow_a_payment(
    world: World, pay: LambdaFunction, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    state = asked(world, pay)
    (item,) = world.table.items.values()
    item["sealed"] = {"S": "somebody else's"}
    assert said(world.ask(pay, state, YES)) == REFUSED
    assert caplog.messages[-1] == "refused: -32602 used_unreadable"
    assert world.calls == 0


def test_a_claim_that_others_always_win_is_to_be_tried_again(
    world: World, pay: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = asked(world, pay)

    def contended(*_args: object, **_options: object) -> None:
        raise tables.Conflict

    with monkeypatch.context() as patch:
        patch.setattr(tables.SealedTable, "replace", contended)
        assert said(world.ask(pay, state, YES)) == LATER
    assert world.calls == 0
    assert said(world.ask(pay, state, YES)) == ["note"]


# Answers


class Open:
    """A seal that is none, as long as what is in it."""

    def seal(self, payload: bytes, /) -> str:
        return payload.decode("latin-1")

    def unseal(self, token: str, /) -> bytes:
        return token.encode("latin-1")


def test_an_answer_too_large_to_be_kept_is_given_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    @tool(single_use="replay")
    def pay(*, elicit: Elicit) -> str:
        elicit("approval", "Pay?", Approval)
        world.calls += 1
        return "x" * 400_000

    caplog.set_level(logging.INFO)
    function = serve(pay, codec=Open(), now=lambda: world.now)
    state = state_of(world.ask(function))
    assert said(world.ask(function, state, YES)) == "x" * 400_000
    assert said(world.ask(function, state, YES)) == "This was done before, and its answer was not kept."
    assert world.calls == 1
    kept = next(line for line in caplog.records if getattr(line, "reason", None))
    assert str(vars(kept)["reason"]).startswith("an item of ")


def test_a_recorded_question_is_repeated_only_to_a_client_that_can_answer(world: World, pay: LambdaFunction) -> None:
    state = asked(world, pay)
    world.ask(pay, state, YES)
    again = world.ask(pay, state, YES, capabilities={})
    assert again
    assert again["result"]["isError"] is True


def test_a_recorded_error_is_repeated_too(world: World) -> None:
    @tool(single_use="replay")
    def pay(*, elicit: Elicit) -> str:
        world.calls += 1
        elicit("approval", "Pay?", Approval)
        return "paid"

    function = serve(pay, codec=world.boxes, now=lambda: world.now)
    state = state_of(world.ask(function))
    declined = {"approval": {"action": "decline"}}
    first = world.ask(function, state, declined)
    assert first
    assert first["result"]["isError"]
    assert world.ask(function, state, declined) == first
    assert world.calls == 2


# Conversations of different callers


def test_another_principal_cannot_run_or_read_a_round() -> None:
    ran: list[bool] = []

    @tool(single_use="replay")
    def pay(*, elicit: Elicit) -> str:
        ran.append(elicit("approval", "Pay?", Approval).pay)
        return "paid"

    function = serve(pay)
    with deployed():
        alice = Conversation(function, principal="alice").call()
        alice.accept(approval={"pay": True})
        thief = alice.as_("mallory")
        assert thief.retry().error == REFUSED
        assert alice.retry().text == "paid"
    assert ran == [True]


# Where it may stand, and what it needs


def _asks(*, elicit: Elicit) -> str:
    return str(elicit("approval", "Pay?", Approval).pay)


@pytest.mark.parametrize(
    ("make", "said_"),
    [
        (lambda: tool(single_use="once")(_asks), 'single_use is "replay" or "reject", not \'once\''),  # type: ignore[call-overload]
        (lambda: tool(single_use="replay")(_never_asks), "single_use needs several rounds: add an `elicit`"),
        (lambda: tool(single_use="replay", max_sheds=0)(_asks), "single_use needs max_sheds=1 or more"),
        (lambda: prompt(single_use="replay")(_asks), "unexpected keyword argument 'single_use'"),  # type: ignore[call-overload]
        (lambda: resource("a://b", single_use="replay")(_asks), "unexpected keyword argument 'single_use'"),  # type: ignore[call-arg]
    ],
)
def test_single_use_without_a_meaning_is_refused_at_decoration(make: Callable[[], object], said_: str) -> None:
    with pytest.raises(TypeError) as refused:
        make()
    assert said_ in str(refused.value)


def _never_asks(a: int) -> int:
    return a


@pytest.mark.parametrize("missing", ["MCP_TABLE", "MCP_KMS_KEYS"])
def test_without_table_or_key_every_event_is_a_misconfiguration(missing: str, caplog: pytest.LogCaptureFixture) -> None:
    function = serve(tool(name="pay", single_use="replay")(_asks))
    with deployed(**{missing: None}):
        response = function(wire.event(wire.message("tools/list")), wire.Context())
    assert response["statusCode"] == 500
    (line,) = caplog.messages
    assert line.startswith("refused: -32603 MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the tab")


def test_a_conversation_from_before_single_use_continues(world: World) -> None:
    before = world.container(None)
    first = world.ask(before)
    assert said(first) == ["approval"]
    paid = world.ask(before, state_of(first), YES)
    now = world.container()
    assert said(world.ask(now, state_of(paid), NOTE)) == "transfer 1: thanks"
    assert said(world.ask(now, state_of(first), YES)) == REFUSED


# Over moto, through boto3


@pytest.fixture
def moto() -> Iterator[None]:
    with deployed(local.Moto(local.table(TABLE))):
        yield


@pytest.mark.usefixtures("moto")
def test_over_dynamodb_itself_a_payment_is_made_once() -> None:
    calls: list[str] = []

    @tool(single_use="replay")
    def pay(*, elicit: Elicit, step: Step) -> str:
        elicit("approval", "Pay?", Approval)
        return step.keyed("transfer", lambda key: calls.append(key) or "paid")  # type: ignore[func-returns-value]

    function = serve(pay)
    talk = Conversation(function).call()
    state = talk.state
    assert talk.accept(approval={"pay": True}).text == "paid"
    assert talk.retry().text == "paid"
    talk.accept(approval={"pay": False})
    assert talk.state == state
    assert talk.error == REFUSED
    assert len(calls) == 1
