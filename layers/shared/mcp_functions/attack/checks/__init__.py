"""All checks in the order in which they run. Last come those after which a server may limit the client."""

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
