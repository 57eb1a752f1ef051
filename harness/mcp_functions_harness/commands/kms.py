"""`kms`: serves KMS and DynamoDB for functions in containers (`sam local`), until Ctrl-C, both at one port."""

import contextlib
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

import click

from mcp_functions_harness import banner, template
from mcp_functions_harness.commands import options
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.dynamodb import PROTOCOL
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.harness import STATE_DIR
from mcp_functions_harness.loopback import HOST, HttpRequest, HttpResponse, Loopback
from mcp_functions_harness.services import author_tables, stored_tables

PORT = 8001


def _check_address(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Refuse what is no IPv4 address, and 0.0.0.0."""
    try:
        address = IPv4Address(text)
    except AddressValueError as error:
        raise click.BadParameter(str(error)) from error
    if address.is_unspecified:
        raise click.BadParameter("that is every address of this machine: other machines must not reach the key")
    return text


@click.command("kms")
@click.option("--port", type=int, default=PORT, metavar="N", help=f"Default: {PORT}; 0: any.")
@click.option(
    "--address",
    callback=_check_address,
    default=HOST,
    metavar="A",
    help=f"Of this machine, where its containers reach it, e.g. 172.17.0.1. Default: {HOST}.",
)
def command(port: int, address: str) -> None:
    """Serve KMS and DynamoDB until Ctrl-C, for functions in containers."""
    names = [banner.HOST_OF_CONTAINERS]
    with (
        options.until_stopped() as is_stopped,
        contextlib.ExitStack() as running,
        Loopback(port=port, max_body=MAX_REQUEST, address=address, names=names) as server,
    ):
        keys = KmsApi(keyfile.load(STATE_DIR))
        # With `sam local`, !Ref of a table gives its logical id.
        tables = stored_tables(running, STATE_DIR, author_tables(template.beside(Path("functions")), name_format="{}"))

        def answer(request: HttpRequest) -> HttpResponse:
            if request.header("x-amz-target").startswith(PROTOCOL.target):
                return tables.answer(request)
            return keys.answer(request)

        server.start(answer)
        click.echo(banner.kms(server.url, keys.arn))
        options.wait(is_stopped)
