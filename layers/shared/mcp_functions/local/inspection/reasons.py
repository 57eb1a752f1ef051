"""The reasons for which a server refuses a requestState (a sealed token), each with its explanation for an operator."""

from __future__ import annotations

from mcp_functions.seal.claims import ClaimReason
from mcp_functions.seal.envelope import MAX_CHARS
from mcp_functions.seal.keys import TokenReason

MAX_ROUNDS = 16  # the most rounds (requests) of one conversation

WHY: dict[str, str] = {
    TokenReason.PREFIX: "it does not start with ks1.: another toolkit or codec made it",
    TokenReason.LENGTH: f"it has more than {MAX_CHARS} characters (unless MCP_MAX_STATE_CHARS is higher)",
    TokenReason.ENCODING: "a character was changed, added or lost on its way: it is not canonical base64url",
    TokenReason.TRUNCATED: "it was cut",
    TokenReason.SUITE: "this version does not know its format",
    TokenReason.KEY_KIND: "this version does not know how its data key is stored",
    TokenReason.KEK_UNKNOWN: "another KMS key than the listed ones wraps its data key",
    TokenReason.BORN_FUTURE: "its data key has a time in the future: clocks differ, or it is forged",
    TokenReason.BORN_PAST: "its data key is older than every state that is still valid",
    TokenReason.WRAPPED_KEY: (
        "KMS does not open its data key for this function, stage and generation: it was sealed for another, or before"
        " the generation was raised, or its first part was changed"
    ),
    TokenReason.COMMITMENT: "it was changed on its way: its data key is valid, but does not fit the rest",
    TokenReason.TAG: "it was changed on its way: the sealed part is damaged",
    ClaimReason.CLAIMS: "its claims are not those of this version",
    ClaimReason.AUDIENCE: "another function or stage sealed it",
    ClaimReason.PRINCIPAL: "it was sealed for another principal",
    ClaimReason.METHOD: "it was sealed for another method",
    ClaimReason.TARGET: "it was sealed for another tool, prompt or resource",
    ClaimReason.ARGUMENTS: "it was sealed for other arguments: a client must repeat them unchanged",
    ClaimReason.ISSUED_FUTURE: "it was sealed later than now: clocks differ by more than a minute",
    ClaimReason.LIFETIME: "its lifetime is longer than the function allows now: answer_within was shortened",
    ClaimReason.EXPIRED: "the answer came too late",
    ClaimReason.ROUND: f"the conversation is over its budget of {MAX_ROUNDS} rounds",
}
