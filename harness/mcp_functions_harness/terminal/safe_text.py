r"""Keeps a terminal from obeying text that comes from outside: from a server, a client, a function or a file.

    "done\x1b[2J"    done\u001b[2J

Such text may clear the screen, colour words, hide a link, forge a line or reverse its order. Each character that does
so is written as JSON escapes it. So a person sees it, and JSON at the output keeps its values.

`safe_output` puts this before everything that a command writes. `write_styled` and `raw_stream` are for the styles of
the commands themselves.
"""

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import TextIO, cast

import click

UNSAFE = re.compile(  # what a terminal obeys, or nobody sees; not the line break and the tab
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # the control characters of ASCII and Latin-1
    "\xad\u200b\u2060-\u2064\ufeff"  # zero width, without the joiners of Persian and emoji
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of text
    "\u2028\u2029"  # separators of lines and paragraphs
    "\u206a-\u206f\ufff9-\ufffb\U000e0000-\U000e007f"  # deprecated formats, annotations and tags
    "\ud800-\udfff"  # half a character, which no encoding writes
    "]"
)


def safe_text(text: str) -> str:
    """Return a text without characters that a terminal obeys; it may have several lines."""
    return UNSAFE.sub(_escape, text)


def safe_line(text: str) -> str:
    """Return a text as one line: a line break in it cannot begin a line that looks like another's."""
    return safe_text(text).replace("\n", "\\n").replace("\t", " ")


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")  # as JSON does above U+FFFF
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class SafeStream(io.TextIOBase):
    """An output that escapes the text that it gets, and writes it to `raw`."""

    def __init__(self, raw: TextIO) -> None:
        """Write to `raw`."""
        self.raw = raw
        self.buffer = SafeBuffer(self)  # takes bytes: click writes them for a shell's completion

    @property
    def encoding(self) -> str:  # type: ignore[override] # click writes past a stream that has none
        """The encoding of the output."""
        return self.raw.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What the output does with a character that its encoding lacks."""
        return self.raw.errors

    def isatty(self) -> bool:
        """Whether a person sees the output."""
        return self.raw.isatty()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write a text."""
        self.raw.write(safe_text(text))
        return len(text)

    def flush(self) -> None:
        """Flush the output."""
        self.raw.flush()


class SafeBuffer(io.RawIOBase):
    """Writes bytes to a stream, as text."""

    def __init__(self, stream: SafeStream) -> None:
        """Write to `stream`."""
        self._stream = stream

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        """Write some bytes."""
        self._stream.write(bytes(data).decode(errors="replace"))
        return len(data)


@contextlib.contextmanager
def safe_output() -> Iterator[None]:
    """Until the end of the block, escape what is written to stdout and stderr."""
    out, errors = SafeStream(sys.stdout), SafeStream(sys.stderr)
    with contextlib.redirect_stdout(cast("TextIO", out)), contextlib.redirect_stderr(cast("TextIO", errors)):
        yield


def raw_stream(stream: TextIO) -> TextIO:
    """Return the output itself, for a writer that escapes the text and not its own styles."""
    return stream.raw if isinstance(stream, SafeStream) else stream


def write_styled(text: str, out: TextIO, *, bold: bool = False, dim: bool = False) -> None:
    """Write a line in a style, if a person sees it."""
    # click writes a terminal code for False ("not bold") too; it writes nothing for None.
    click.secho(safe_text(text), file=raw_stream(out), bold=bold or None, dim=dim or None)
