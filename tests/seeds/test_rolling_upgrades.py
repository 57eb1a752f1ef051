"""SEP-2322, use case 1: a conversation that began with one version of a function continues with another.

"The old version had two input requests with keys github_login and google_login"; the new one "still uses the
github_login input request, but it replaces the google_login input request with a new microsoft_login". Both versions
run side by side, with the keys of one deployment, as during a rolling upgrade. `version("github", "google")` makes a
version that asks for these logins, all in one round; with `inline`, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.testing import Conversation
from tests.seeds.functions import make_version
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction

OCTOCAT = {"action": "accept", "content": {"name": "octocat"}}
GOOGLER = {"action": "accept", "content": {"name": "googler"}}
BILL = {"action": "accept", "content": {"name": "bill"}}


class LoadBalancedClient:
    """A client whose requests reach different versions, as a load balancer decides."""

    def __init__(self) -> None:
        self.id = 0
        self.result: dict[str, Any] = {}

    def call(self, function: LambdaFunction, **responses: Any) -> LoadBalancedClient:  # noqa: ANN401 - JSON
        self.id += 1
        state = {"requestState": self.result["requestState"]} if "requestState" in self.result else {}
        answers = {"inputResponses": responses} if responses else {}
        sent = wire.message("tools/call", {"name": "link_accounts", "arguments": {}, **answers, **state}, id=self.id)
        response = function(wire.event(sent), wire.Context("local_link_accounts"))
        self.result = wire.read(response, "tools/call")["result"]
        return self

    @property
    def asked(self) -> list[str]:
        return list(self.result.get("inputRequests", {}))

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])


@pytest.mark.parametrize("new_asks_inline", [False, True])
def test_the_new_version_does_not_repeat_a_question_that_the_old_one_asked(*, new_asks_inline: bool) -> None:
    old, new = make_version("github", "google"), make_version("github", "microsoft", inline=new_asks_inline)
    client = LoadBalancedClient().call(old)
    assert client.asked == ["github_login", "google_login"]  # step 2
    client.call(new, github_login=OCTOCAT, google_login=GOOGLER)
    assert client.asked == ["microsoft_login"]  # step 4: "does not need to prompt the user … a second time"
    assert "octocat" not in str(client.result)  # it is encrypted in the request state
    assert client.call(new, microsoft_login=BILL).text == "octocat and bill"  # step 6


def test_versions_that_ask_one_question_after_the_other_keep_the_answers() -> None:
    old, new = make_version("github", "google", inline=True), make_version("github", "microsoft", inline=True)
    client = LoadBalancedClient().call(old).call(old, github_login=OCTOCAT)
    assert client.asked == ["google_login"]
    assert client.call(new, google_login=GOOGLER).asked == ["microsoft_login"]
    assert client.call(new, microsoft_login=BILL).text == "octocat and bill"


@pytest.mark.parametrize("inline", [False, True])
def test_the_old_version_keeps_the_answers_if_a_later_round_reaches_it(*, inline: bool) -> None:
    old, new = make_version("github", "google", inline=inline), make_version("github", "microsoft", inline=inline)
    client = (
        LoadBalancedClient()
        .call(make_version("github", "google"))
        .call(new, github_login=OCTOCAT, google_login=GOOGLER)
    )
    assert client.asked == ["microsoft_login"]
    assert client.call(old, microsoft_login=BILL).text == "octocat and googler"


def test_the_new_version_ignores_an_answer_that_it_does_not_need() -> None:
    client = LoadBalancedClient().call(make_version("github", "google"))
    assert client.call(make_version("github"), github_login=OCTOCAT, google_login=GOOGLER).text == "octocat"


def test_the_new_version_asks_only_its_additional_question() -> None:
    client = LoadBalancedClient().call(make_version("github"))
    assert client.call(make_version("github", "microsoft"), github_login=OCTOCAT).asked == ["microsoft_login"]


def test_a_new_version_without_questions_finishes_the_conversation() -> None:
    client = LoadBalancedClient().call(make_version("github"))
    assert client.call(make_version(), github_login=OCTOCAT).text == "nobody was asked"


def test_the_new_version_repeats_a_question_only_if_its_text_changed() -> None:
    old = make_version("github", "google", inline=True)
    new = make_version("github", "google", inline=True, words="Who are you on {}?")
    client = LoadBalancedClient().call(old).call(new, github_login=OCTOCAT)
    assert client.asked == ["github_login"]
    assert client.result["inputRequests"]["github_login"]["params"]["message"] == "Who are you on Github?"
    assert client.call(new, github_login=OCTOCAT).asked == ["google_login"]


def test_three_versions_in_a_row_ask_each_question_once() -> None:
    questions: list[str] = []
    client, people = LoadBalancedClient(), {"github_login": OCTOCAT, "google_login": GOOGLER, "microsoft_login": BILL}
    for function in (make_version("github"), make_version("github", "google"), make_version("github", "microsoft")):
        client.call(function, **{key: people[key] for key in client.asked})
        questions += client.asked
    assert questions == ["github_login", "google_login", "microsoft_login"]
    assert client.call(make_version("github", "microsoft"), microsoft_login=BILL).text == "octocat and bill"


def test_two_questions_of_one_round_may_be_answered_in_two_rounds() -> None:
    talk = Conversation(make_version("github", "google")).call()
    assert talk.answer(google_login=GOOGLER).asked == ["github_login"]
    assert talk.answer(github_login=OCTOCAT).text == "octocat and googler"
