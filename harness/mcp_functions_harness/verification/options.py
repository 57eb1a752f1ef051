"""What the user of `verify` says, most of it on the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from mcp_functions.protocol.wire_types import JSONObject


class Access(TypedDict):
    """The options about the user's credentials; None where the user gave none."""

    token: str | None  # an access token, in the modes jwt and oauth
    region: str | None  # the AWS Region; None: as the AWS CLI decides
    profile: str | None  # the profile of the AWS configuration; None: as the AWS CLI decides


class Choices(Access):
    """The options that the command line gives as they are."""

    functions: Path  # the folder with the project's functions and catalog
    auth: str | None  # the mode that the user expects; None: any
    origins: Sequence[str]  # the origins of web pages that may call
    seconds: float  # how long to wait for one task, and for a line in the log


class Options(Choices):
    """All options."""

    named_tools: Sequence[tuple[str, JSONObject]]  # tools that may be called, with their arguments
    answers: JSONObject  # by a question's key: the content of its form, "decline" or "cancel"
