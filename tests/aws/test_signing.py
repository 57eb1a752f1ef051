"""A request has the signature that botocore computes."""

from __future__ import annotations

import datetime as dt
from unittest import mock

from botocore import auth, awsrequest
from botocore.credentials import Credentials as Theirs
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.aws.endpoints import Credentials, Endpoint
from mcp_functions.aws.signing import sign
from tests.aws.calls import SECRET

VISIBLE = st.text("abcXYZ019-._~ =+/,:;", max_size=20).map(str.strip)


@given(
    st.sampled_from(["/", "/2015-03-31/functions/shop_add/invocations", "/2015-03-31/functions/a%3Ab%25/invocations"]),
    st.dictionaries(st.sampled_from(["content-type", "x-amz-target", "user-agent", "x-amzn-trace-id"]), VISIBLE),
    st.binary(max_size=100),
    st.sampled_from([None, "token+/="]),
    st.integers(0, 4_000_000_000),
)
def test_a_request_has_the_signature_that_botocore_computes(
    path: str, headers: dict[str, str], body: bytes, token: str | None, at: int
) -> None:
    key = Credentials("AKID", SECRET, token)
    known = {"host": "kms.eu-west-1.amazonaws.com", **headers}
    endpoint = Endpoint("kms", "eu-west-1", "https", host=known["host"], port=443, credentials=key)
    ours = sign(path, known, body, endpoint, at)
    request = awsrequest.AWSRequest("POST", f"https://kms.eu-west-1.amazonaws.com{path}", dict(known), body)
    moment = dt.datetime.fromtimestamp(at, dt.UTC)
    with mock.patch.object(auth, "get_current_datetime", return_value=moment):
        auth.SigV4Auth(Theirs("AKID", SECRET, token), "kms", "eu-west-1").add_auth(request)
    theirs = {name.lower(): value for name, value in request.headers.items()}
    assert ours == {name: theirs[name] for name in ours}


def test_printing_credentials_does_not_show_their_secret() -> None:
    assert SECRET not in repr(Credentials("AKID", SECRET, SECRET))
