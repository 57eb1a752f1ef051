"""Clients of 2025 poll for messages, repeat answers, cancel calls, and answer too late.

An event of a stream has an id. A client resumes the stream after an event with GET and the id in Last-Event-ID.
`client.resume()` does so with the last id; it gets the next question, the result, or only a time to wait.
"""

from __future__ import annotations

import pytest

from tests.legacy.clients import Client, error_message, read_question, read_retry, result_text
from tests.legacy.deployment import CallOnce, Deployment
from tests.legacy.handlers import start_resolving

# ---- Event ids


def test_each_event_id_is_unique_and_fits_into_a_header(client: Client) -> None:
    client.accept(start_resolving(client), why="Duplicate")
    client.accept(read_question(client.resume())["id"], number=3)
    client.resume()
    assert len(set(client.event_ids)) == len(client.event_ids)
    assert max(len(id_) for id_ in client.event_ids) < 1500


def test_a_lost_question_is_sent_again(client: Client) -> None:
    events = client.call("resolve", bug=7)
    assert client.resume(events[0].id)[-1].data == events[-1].data


def test_a_lost_result_is_sent_again(client: Client) -> None:
    client.accept(start_resolving(client), why="Fixed")
    events = client.resume()
    assert client.resume(events[0].id)[-1].data == events[-1].data


def test_nothing_follows_the_event_of_the_result(client: Client) -> None:
    client.accept(start_resolving(client), why="Fixed")
    client.resume()
    assert client.http("GET", last_event_id=client.event_ids[-1])["statusCode"] == 405


def test_the_first_event_id_leads_to_the_result_of_the_last_round(client: Client) -> None:
    client.accept(start_resolving(client), why="Duplicate")
    client.accept(read_question(client.resume())["id"], number=3)
    assert result_text(client.resume(client.event_ids[0])) == "7 duplicates 3"


def test_a_poll_while_the_next_round_runs_gets_a_time_to_wait(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    retries: list[int] = []
    deployment.on_round = CallOnce(lambda: retries.append(read_retry(client.resume(client.event_ids[0]))))
    client.accept(id_, why="Fixed")
    assert retries == [500]
    assert result_text(client.resume(client.event_ids[0])) == "7 fixed"


def test_clients_poll_more_slowly_while_the_user_thinks(client: Client) -> None:
    start_resolving(client)
    retries = [read_retry(client.resume()) for _ in range(10)]
    assert retries == sorted(retries)
    assert retries[0] == 500
    assert retries[-1] == 5000


# ---- Answers that come twice


def test_a_second_answer_to_a_question_is_ignored(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    client.accept(id_, why="Fixed")
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    assert result_text(client.resume()) == "7 fixed"
    assert deployment.rounds_run == 2


def test_a_second_answer_after_the_result_is_ignored(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    client.accept(id_, why="Fixed")
    assert result_text(client.resume()) == "7 fixed"
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    assert deployment.rounds_run == 2


def test_a_second_answer_while_the_first_one_runs_is_ignored(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    deployment.on_round = CallOnce(lambda: client.accept(id_, why="Duplicate"))
    client.accept(id_, why="Fixed")
    assert result_text(client.resume()) == "7 fixed"
    assert deployment.rounds_run == 2


def test_of_two_simultaneous_answers_the_first_one_written_counts(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    deployment.before_write(lambda: client.accept(id_, why="Fixed"))
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    assert result_text(client.resume()) == "7 fixed"
    assert deployment.rounds_run == 2


def test_of_two_simultaneous_answers_within_a_round_the_first_one_written_counts(
    client: Client, deployment: Deployment
) -> None:
    id_ = read_question(client.call("ask_both"))["id"]
    deployment.before_write(lambda: client.accept(id_, why="Fixed"))
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    client.accept(read_question(client.resume())["id"], number=1)
    assert result_text(client.resume()) == "Fixed 1"


# ---- Calls that end early


def test_a_question_without_an_answer_ends_the_call_after_15_minutes(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    deployment.clock.advance(901)
    assert "not answered in time" in error_message(client.resume())
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert deployment.rounds_run == 1


def test_the_error_of_an_unanswered_question_stays_after_its_item_expired(
    client: Client, deployment: Deployment
) -> None:
    start_resolving(client)
    deployment.clock.advance(901 + 301)
    deployment.table.expire(deployment.clock())
    assert "not answered in time" in error_message(client.resume())


def test_an_item_expires_five_minutes_after_its_question(client: Client, deployment: Deployment) -> None:
    start_resolving(client)
    (item,) = deployment.table.items.values()
    assert int(item["expires"]["N"]) == deployment.clock() + 900 + 300


def test_an_answer_to_a_cancelled_call_is_ignored(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    assert client.cancel()["statusCode"] == 202
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert deployment.rounds_run == 1
    assert "error" in client.resume()[-1].data


def test_a_cancellation_of_no_request_is_ignored(client: Client) -> None:
    params = {"requestId": None}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert client.http("POST", message)["statusCode"] == 202


def test_a_call_with_a_used_request_id_replaces_the_earlier_call(client: Client) -> None:
    first_id, first_event = start_resolving(client, bug=7), client.event_ids[-1]
    client.request_id -= 1
    second_id = start_resolving(client, bug=8)
    assert client.accept(first_id, why="Fixed")["statusCode"] == 202
    client.accept(second_id, why="Fixed")
    assert result_text(client.resume()) == "8 fixed"
    assert "error" in client.resume(first_event)[-1].data


# ---- Other clients


@pytest.mark.parametrize("user", ["mallory", "alice"])
def test_another_session_cannot_answer_a_question(client: Client, deployment: Deployment, user: str) -> None:
    id_ = start_resolving(client)
    other = deployment.initialized_client(user)
    assert other.accept(id_, why="Duplicate")["statusCode"] == 400
    assert deployment.rounds_run == 1


@pytest.mark.parametrize("user", ["mallory", "alice"])
def test_another_session_cannot_resume_a_stream(client: Client, deployment: Deployment, user: str) -> None:
    start_resolving(client)
    other = deployment.initialized_client(user)
    assert other.http("GET", last_event_id=client.event_ids[-1])["statusCode"] == 404


def test_a_forged_id_is_refused(client: Client) -> None:
    forged_question = start_resolving(client)[:-8] + "AAAAAAAA"
    forged_event = client.event_ids[-1][:-8] + "AAAAAAAA"
    assert client.accept(forged_question, why="Duplicate")["statusCode"] == 400
    assert client.http("GET", last_event_id=forged_event)["statusCode"] == 404


def test_a_question_id_and_an_event_id_are_not_interchangeable(client: Client) -> None:
    id_ = start_resolving(client)
    assert client.http("GET", last_event_id=id_)["statusCode"] == 404
    assert client.accept(client.event_ids[-1], why="Fixed")["statusCode"] == 400


def test_an_answer_to_a_number_is_refused(client: Client) -> None:
    assert client.http("POST", {"jsonrpc": "2.0", "id": 5, "result": {}})["statusCode"] == 400


# ---- Log


def test_each_answer_and_each_resumption_writes_one_log_line(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    id_ = start_resolving(client)
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.accept(id_, why="Fixed")
        client.resume()
    answer, resumption = [vars(record) for record in caplog.records if "revision" in vars(record)]
    assert (answer["method"], answer["outcome"], answer["status"]) == ("answer", "complete", 202)
    assert (resumption["method"], resumption["outcome"], resumption["status"]) == ("resume", "complete", 200)


def test_no_log_line_holds_an_id_of_a_question_an_event_or_a_session(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "mcp_functions"):
        id_ = start_resolving(client)
        client.accept(id_, why="Fixed")
        client.resume()
    lines = str([vars(record) for record in caplog.records])
    assert not [secret for secret in (id_, client.event_ids[-1], str(client.session)) if secret in lines]


def test_answers_that_change_nothing_are_logged_at_level_info(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    answered_id = start_resolving(client)
    cancelled_id = start_resolving(client)
    client.accept(answered_id, why="Fixed")
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.accept(answered_id, why="Fixed")
        client.cancel()
        client.accept(cancelled_id, why="Fixed")
        client.resume()
    lines = [record for record in caplog.records if "reason" in vars(record)]
    reasons = [vars(record)["reason"] for record in lines]
    assert reasons == ["answered_before", "cancelled", "answered_late", "nothing_waits"]
    assert {record.levelname for record in lines} == {"INFO"}
