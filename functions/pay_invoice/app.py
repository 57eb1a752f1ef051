"""A payment. The invoice is paid once, even if rounds are repeated, concurrent, reordered or rewound."""

import os

from mcp_functions import Elicit, Step, serve, tool

INVOICES = {"2026-001": 1290, "2026-002": 75}


def bank_token() -> str:
    """Read the secret that BANK_SECRET names. Without it, as on your machine, the simulated bank accepts any token."""
    name = os.environ.get("BANK_SECRET")
    if not name:
        return "local"
    from aws_lambda_powertools.utilities import parameters

    return str(parameters.get_secret(name, max_age=300))


def transfer(number: str, euros: int, key: str) -> str:
    """Simulate a bank: it identifies us by our token and a transfer by its key, and makes each transfer once."""
    return f"transfer {key[:8]} of {euros} EUR for {number}" if bank_token() else "none: the bank does not know us"


@tool(single_use="replay")
def pay_invoice(number: str, *, elicit: Elicit, step: Step) -> str:
    """Pay an invoice, once the user approves."""
    if number not in INVOICES:
        return f"There is no invoice {number}."
    euros = INVOICES[number]
    if not elicit("approval", f"Pay invoice {number}, {euros} EUR?", bool):
        return f"Invoice {number} was not paid."
    return f"Paid: {step.keyed('transfer', transfer, number, euros)}."


handler = serve(pay_invoice)
