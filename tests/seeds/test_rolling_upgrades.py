"""SEP-2322, use case 1: a conversation that began with one version of a function goes on with another.

"The old version had two input requests with keys github_login and google_login"; the new one "still uses the
github_login input request, but it replaces the google_login input request with a new microsoft_login". Both versions
run side by side, with the keys of one deployment, as during a rolling upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.testing import Conversation
from tests.seeds.functions import version
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction

OCTOCAT, GOOGLER, BILL = ({"action": "accept", "content": {"name": name}} for name in ("octocat", "googler", "bill"))


class Balanced:
    """A client behind a load balancer: each request goes to the version that the test names."""

    def __init__(self) -> None:
        self.id = 0
        self.result: dict[str, Any] = {}

    def call(self, deployed: LambdaFunction, **responses: Any) -> Balanced:  # noqa: ANN401 - JSON
        self.id += 1
        state = {"requestState": self.result["requestState"]} if "requestState" in self.result else {}
        answers = {"inputResponses": responses} if responses else {}
        sent = wire.message("tools/call", {"name": "link_accounts", "arguments": {}, **answers, **state}, id=self.id)
        response = deployed(wire.event(sent), wire.Context("local_link_accounts"))
        self.result = wire.read(response, "tools/call")["result"]
        return self

    @property
    def asked(self) -> list[str]:
        return list(self.result.get("inputRequests", {}))

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])


@pytest.mark.parametrize("new_asks_inline", [False, True])
def test_an_answer_given_to_the_old_version_is_not_asked_for_again_by_the_new_one(*, new_asks_inline: bool) -> None:
    old, new = version("github", "google"), version("github", "microsoft", inline=new_asks_inline)
    client = Balanced().call(old)
    assert client.asked == ["github_login", "google_login"]  # step 2
    client.call(new, github_login=OCTOCAT, google_login=GOOGLER)
    assert client.asked == ["microsoft_login"]  # step 4: "does not need to prompt the user … a second time"
    assert "octocat" not in str(client.result)  # it travels in the state, sealed
    assert client.call(new, microsoft_login=BILL).text == "octocat and bill"  # step 6


def test_functions_that_ask_one_by_one_keep_their_answers_too() -> None:
    old, new = version("github", "google", inline=True), version("github", "microsoft", inline=True)
    client = Balanced().call(old).call(old, github_login=OCTOCAT)
    assert client.asked == ["google_login"]
    assert client.call(new, google_login=GOOGLER).asked == ["microsoft_login"]
    assert client.call(new, microsoft_login=BILL).text == "octocat and bill"


@pytest.mark.parametrize("inline", [False, True])
def test_a_round_that_meets_the_old_version_again_loses_nothing_either(*, inline: bool) -> None:
    old, new = version("github", "google", inline=inline), version("github", "microsoft", inline=inline)
    client = Balanced().call(version("github", "google")).call(new, github_login=OCTOCAT, google_login=GOOGLER)
    assert client.asked == ["microsoft_login"]
    assert client.call(old, microsoft_login=BILL).text == "octocat and googler"


def test_an_answer_that_the_new_version_no_longer_needs_does_not_matter() -> None:
    client = Balanced().call(version("github", "google"))
    assert client.call(version("github"), github_login=OCTOCAT, google_login=GOOGLER).text == "octocat"


def test_a_question_that_the_new_version_has_added_is_all_that_it_asks() -> None:
    client = Balanced().call(version("github"))
    assert client.call(version("github", "microsoft"), github_login=OCTOCAT).asked == ["microsoft_login"]


def test_a_new_version_that_asks_nothing_any_more_finishes_what_the_old_one_began() -> None:
    client = Balanced().call(version("github"))
    assert client.call(version(), github_login=OCTOCAT).text == "nobody was asked"


def test_a_question_in_new_words_is_asked_again_and_the_other_answers_are_kept() -> None:
    old = version("github", "google", inline=True)
    new = version("github", "google", inline=True, words="Who are you on {}?")
    client = Balanced().call(old).call(new, github_login=OCTOCAT)
    assert client.asked == ["github_login"]
    assert client.result["inputRequests"]["github_login"]["params"]["message"] == "Who are you on Github?"
    assert client.call(new, github_login=OCTOCAT).asked == ["google_login"]


def test_three_versions_in_a_row_ask_each_question_once() -> None:
    questions: list[str] = []
    client, people = Balanced(), {"github_login": OCTOCAT, "google_login": GOOGLER, "microsoft_login": BILL}
    for deployed in (version("github"), version("github", "google"), version("github", "microsoft")):
        client.call(deployed, **{key: people[key] for key in client.asked})
        questions += client.asked
    assert questions == ["github_login", "google_login", "microsoft_login"]
    assert client.call(version("github", "microsoft"), microsoft_login=BILL).text == "octocat and bill"


def test_several_requests_of_one_round_may_be_answered_in_several() -> None:
    talk = Conversation(version("github", "google")).call()
    assert talk.answer(google_login=GOOGLER).asked == ["github_login"]
    assert talk.answer(github_login=OCTOCAT).text == "octocat and googler"
