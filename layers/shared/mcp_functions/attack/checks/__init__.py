"""The table of checks, in the order in which they are tried; what wears out a server's patience comes last."""

from mcp_functions.attack.checks import answers, crossing, headers, http, states, text, watching

CHECKS = (
    *watching.CHECKS,
    *answers.CHECKS,
    *headers.CHECKS,
    *text.CHECKS,
    *http.CHECKS,
    *crossing.CHECKS,
    *states.CHECKS,
)
