"""All checks in the order in which they run. Last come those after which a server may limit the client."""

from tests.attack.checks import answers, crossing, headers, http, states, text, watching
from tests.attack.findings import Check

MODULES = (watching, answers, headers, text, http, crossing, states)
CHECKS = [member for module in MODULES for member in vars(module).values() if isinstance(member, Check)]
