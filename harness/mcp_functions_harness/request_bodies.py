"""Reads the body of an HTTP/1.1 request, up to a limit.

The header Content-Length has the length of the body, or the body comes in chunks (RFC 9112, section 7.1): each chunk is
its size in hexadecimal, a line break, the bytes, and a line break. A chunk of size 0 and an empty line end the body;
headers between these two, the "trailers", are ignored.
"""

import re
from collections.abc import Iterator
from email.message import Message
from io import BufferedIOBase

MAX_LINE = 1024  # bytes of a line with a chunk's size, or of a trailer
MAX_TRAILERS = 64
CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")  # int() would take a sign, "0x" and "_" too
PIECE = 64 * 1024  # bytes that are read at once
MAX_DISCARDED = 32 * 1024 * 1024  # bytes read past the limit: a client that sends reads no 413


class BadBody(ValueError):
    """The framing is broken, so the end of the request is unknown."""


class TooLarge(ValueError):
    """The body is over the limit."""


def read_body(stream: BufferedIOBase, headers: Message, limit: int) -> bytes | None:
    """Read the body, of `limit` bytes at most, from the stream after a request's headers; None if it has no body.

    Raises:
        BadBody: the framing is ambiguous or broken.
        TooLarge: the body is over the limit.
    """
    coding = headers.get("Transfer-Encoding")
    lengths = headers.get_all("Content-Length") or []
    if coding is not None:
        # "A server MAY reject a request that contains both Content-Length and Transfer-Encoding" (section 6.1). If two
        # programs on the way took different ones, a request could hide inside the body of another.
        if lengths or coding.strip().lower() != "chunked":
            raise BadBody
        return _join(_read_chunks(stream), limit)
    if not lengths:
        return None
    if len(set(lengths)) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
        raise BadBody
    return _join(_read_bytes(stream, int(lengths[0])), limit) or None


def _join(pieces: Iterator[bytes], limit: int) -> bytes:
    """Join the pieces of a body. A body over the limit is read, but not kept."""
    kept = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit + MAX_DISCARDED:
            break
        if size <= limit:
            kept.append(piece)
    if size > limit:
        raise TooLarge
    return b"".join(kept)


def _read_bytes(stream: BufferedIOBase, length: int) -> Iterator[bytes]:
    while length > 0:
        piece = stream.read(min(length, PIECE))
        if not piece:  # the client has closed the connection
            raise BadBody
        length -= len(piece)
        yield piece


def _read_chunks(stream: BufferedIOBase) -> Iterator[bytes]:
    size = _read_chunk_size(stream)
    while size > 0:
        yield from _read_bytes(stream, size)
        if stream.read(2) != b"\r\n":
            raise BadBody
        size = _read_chunk_size(stream)
    for _ in range(MAX_TRAILERS):  # they are read, and ignored
        if stream.readline(MAX_LINE) == b"\r\n":
            return
    raise BadBody


def _read_chunk_size(stream: BufferedIOBase) -> int:
    line = stream.readline(MAX_LINE)
    size = line.partition(b";")[0].strip()  # without the chunk's extensions, which are ignored
    if not CHUNK_SIZE.fullmatch(size):
        raise BadBody
    return int(size, 16)
