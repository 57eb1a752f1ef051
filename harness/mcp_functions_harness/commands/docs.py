"""`docs`: shows a page of the manual, rendered for a terminal, and as Markdown for a file or a pipe."""

import contextlib
import shutil
import sys
from collections.abc import Iterator

import click

from mcp_functions_harness.manual import contents, links
from mcp_functions_harness.terminal.safe_text import raw_stream

WIDTH = 100  # columns of a page; a longer line is hard to read
NAMES = """\

The names that you import: python -m pydoc mcp_functions.Elicit"""


def _complete(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    return [name for name in contents.PAGES if name.startswith(prefix)]


@click.command("docs")
@click.argument("page", required=False, shell_complete=_complete, metavar="[PAGE[#SECTION]]")
def command(page: str | None) -> None:
    """Show a page of the manual, of this version. Without PAGE, list the pages."""
    if page is None:
        click.echo("\n".join(_listed()))
        return
    name, _hash, section = page.partition("#")
    found = contents.find(name)
    text = found.section(section).text if section else found.text
    if not found.path.endswith(".md"):
        text = f"```{found.path.rpartition('.')[2]}\n{text}```\n"
    text = links.spelled_out(text, found)
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    with contextlib.redirect_stdout(raw_stream(sys.stdout)):  # the text and its styles are ours
        click.echo_via_pager(_rendered(text), color=True)


def _listed() -> Iterator[str]:
    yield f"{links.COMMAND} PAGE shows a page, {links.COMMAND} PAGE#SECTION a section of it.\n"
    for group, names in contents.CONTENTS.items():
        yield group
        for name in names:
            yield f"  {name:<29}{contents.PAGES[name].title}"
    yield NAMES


def _rendered(text: str) -> str:
    """Render Markdown; without rich, which the extra `local` installs, it stays Markdown."""
    try:
        from rich.console import Console
        from rich.markdown import Markdown
        from rich.theme import Theme
    except ModuleNotFoundError:
        return text
    theme = Theme({"markdown.code": "bold cyan"})  # rich's own has a black background
    console = Console(width=min(shutil.get_terminal_size().columns, WIDTH), force_terminal=True, theme=theme)
    with console.capture() as captured:
        console.print(Markdown(text, hyperlinks=False))
    return captured.get()
