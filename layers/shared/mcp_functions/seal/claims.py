"""The claims of a state, and their bytes (envelope.md §9.1).

    {"v":1,"aud":"demo/tool/prod","m":"tools/call",…,"q":{…},"s":{…}}    a line of JSON
    the function's own text                                              if it keeps one

The members of the JSON are

    v                  the version of this layout
    aud, m, t, a, p    what the state is bound to: audience, method, target, digests of the arguments and the principal
    iat, exp, fx       when it was sealed, when it expires, when the conversation must end: unix milliseconds
    f, r               the id of the conversation, and the number of the round
    q                  the open questions: wire key -> fingerprint
    s                  the record of the conversation, without the function's own text

A function that writes its own InputRequiredResult may keep a text, in `record["state"]`. This text is not a member of
`s`, because inside JSON it would be escaped and grow.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import DeveloperError, InvalidRequestState
from mcp_functions.protocol.json_reader import is_deeper, may_be_deeper
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.seal.binding import Binding
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject

VERSION = 1


class Claims(NamedTuple):
    """The content of a state. Times are in unix milliseconds."""

    binding: Binding
    issued: int
    expires: int
    flow_deadline: int  # when the conversation ends
    flow: str  # the id of the conversation
    round: int  # the number of the round that left the state, from 1
    asked: dict[str, str]  # the fingerprint of each question of that round, by wire key
    record: JSONObject  # what earlier rounds recorded, such as answers (`rounds.record`)


# `json.loads` is recursive, and fails at about 1,000 levels minus the frames of its callers. This is far below.
MAX_RECORD_DEPTH = 200


def encode_claims(claims: Claims) -> bytes:
    r"""Write the claims as one line of JSON, followed by the function's text, if there is one.

    A text may hold half of a surrogate pair, for example "\ud83d" alone, which UTF-8 refuses. The next round must read
    the same text again, so "surrogatepass" encodes the half as if it were a character.

    Raises:
        DeveloperError: the record is not JSON, or is nested too deep.
    """
    record = dict(claims.record)
    line_end_and_text = ""
    if isinstance(record.get("state"), str):
        line_end_and_text = "\n" + record.pop("state")
    try:
        document = dumps(_to_members(claims, record))
        payload = (document + line_end_and_text).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        allowed = "keep str, int, finite float, bool, None, list and dict with str keys in it"
        raise DeveloperError(rule=f"the state is not JSON: {allowed}") from None
    # A list that contains itself has no last level, and `is_deeper` would not end. `dumps` above has refused it.
    if may_be_deeper(document, MAX_RECORD_DEPTH) and is_deeper(record, MAX_RECORD_DEPTH):
        raise DeveloperError(rule="the state is nested deeper than {most}", most=MAX_RECORD_DEPTH)
    return payload


def _to_members(claims: Claims, record: JSONObject) -> JSONObject:
    """Return the members of the JSON."""
    return {
        "v": VERSION,
        "aud": claims.binding.audience,
        "m": claims.binding.method,
        "t": claims.binding.target,
        "a": claims.binding.arguments,
        "p": claims.binding.principal,
        "iat": claims.issued,
        "exp": claims.expires,
        "fx": claims.flow_deadline,
        "f": claims.flow,
        "r": claims.round,
        "q": claims.asked,
        "s": record,
    }


def read_claims(payload: bytes) -> Claims:
    """Read the claims of a payload; InvalidRequestState if a member is missing, has another type, or is unknown."""
    try:
        document, line_end, text = payload.decode("utf-8", "surrogatepass").partition("\n")
        # Not the JSON reader for requests: it would change recorded values, for example 2.0 and lone surrogates.
        members = json.loads(document)
    except (ValueError, RecursionError):  # the text of the error may quote the payload
        raise InvalidRequestState(reason="claims") from None
    claims = _from_members(members)
    if line_end:
        claims.record["state"] = text
    return claims


def _from_members(members: object) -> Claims:
    """Read the members of the JSON: each of its type, and no other one."""
    match members:
        case {
            "v": int(version),
            "aud": str(audience),
            "m": str(method),
            "t": str(target),
            "a": str(arguments),
            "p": str() | None as principal,
            "iat": int(issued),
            "exp": int(expires),
            "fx": int(flow_deadline),
            "f": str(flow),
            "r": int(round_),
            "q": dict(asked),
            "s": dict(record),
            **others,
        } if version == VERSION and not others:
            integers = (version, issued, expires, flow_deadline, round_)
        case _:
            raise InvalidRequestState(reason="claims")
    if any(isinstance(number, bool) for number in integers):  # in Python, a boolean is an int, too
        raise InvalidRequestState(reason="claims")
    if not all(isinstance(fingerprint, str) for fingerprint in asked.values()):
        raise InvalidRequestState(reason="claims")
    binding = Binding(audience, method, target, arguments, principal)
    return Claims(binding, issued, expires, flow_deadline, flow, round_, asked, record)


# The fields of a Binding in the order of envelope.md §9.5, which also names the reasons for a refusal by them
BINDING_FIELDS = ("audience", "principal", "method", "target", "arguments")


def check_binding(claims: Claims, binding: Binding) -> None:
    """Check that a state belongs to a request."""
    for field in BINDING_FIELDS:
        if not _is_equal(getattr(claims.binding, field), getattr(binding, field)):
            raise InvalidRequestState(reason=field)


def _is_equal(claim: str | None, expected: str | None) -> bool:
    """Compare a claim in constant time. Only a principal may be None, and None equals nothing but None."""
    if claim is None or expected is None:
        return claim is expected
    return hmac.compare_digest(claim.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))
