"""KMS: moto's, with the project's one key, behind HTTP; and AWS's answers where moto's differ.

moto forgives what AWS refuses (a disabled key, a blob too long), joins an encryption context without separators, so
that different ones are equal, and calls damage by other names. That is put right here, from what was asked and what
moto said.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.local.environment import ACCOUNT, REGION
from mcp_functions.local.loopback import HttpResponse
from mcp_functions.local.problems import not_installed

if TYPE_CHECKING:
    from moto.kms.models import Key, KmsBackend

    from mcp_functions.local.doubles.keyfile import StoredKey
    from mcp_functions.local.loopback import HttpRequest

MAX_REQUEST = 1024 * 1024  # bytes
MAX_BLOB = 6144  # bytes: "CiphertextBlob … Maximum length of 6144"
MAX_CONTEXT = 8192  # characters of an encryption context as JSON
KEY_ID_BYTES = 36  # moto's blobs begin with the id of their key
CRYPTOGRAPHIC = frozenset({"Encrypt", "Decrypt", "ReEncrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext"})
CONTEXTS = ("EncryptionContext", "SourceEncryptionContext", "DestinationEncryptionContext")


class Refusal(NamedTuple):
    """An error as AWS would answer it: its name in the API, and a text."""

    kind: str
    message: str = ""


class KmsApi:
    """Answers KMS requests with one key that is already there.

    Attributes:
        arn: of the key.

    """

    def __init__(self, stored: StoredKey) -> None:
        """Give moto the key; a backend of its own, so that two harnesses share nothing.

        Raises:
            Problem: moto is not installed.

        """
        try:
            from moto.kms.models import KmsBackend  # noqa: PLC0415 - half a second that `catalog` and `next` do not need
            from moto.kms.responses import KmsResponse  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error

        class Response(KmsResponse):
            kms_backend = KmsBackend(REGION, ACCOUNT)  # moto's own is a property that reads a global

        self._backend, self._response = Response.kms_backend, Response
        self.arn = _adopt(self._backend, stored)

    def warm(self) -> None:
        """Ask moto something: what it needs to answer it imports with the first question, and clients wait a second."""
        self._ask_moto("ListKeys", {})

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request.

        The signature is not checked; but a page in a browser cannot send one to another origin without asking first.
        """
        action, params = request.header("x-amz-target").removeprefix("TrentService."), _params(request.body)
        if not request.header("authorization").startswith("AWS4-"):
            return _refused(Refusal("MissingAuthenticationTokenException"))
        if params is None:
            return _refused(Refusal("SerializationException"))
        if refusal := _invalid(action, params):
            return _refused(refusal)
        try:
            status, body = self._ask_moto(action, _for_moto(params))
        except NotImplementedError:
            return _refused(Refusal("UnknownOperationException"))
        except Exception as error:  # noqa: BLE001 - moto raises what it likes
            status, body = 500, json.dumps({"__type": "KMSInternalException", "message": type(error).__name__})
        refusal = self._refusal(action, params, answered=status == 200)  # noqa: PLR2004 - HTTP's word for yes
        return _refused(refusal) if refusal else _response(status, body)

    def _ask_moto(self, action: str, params: dict[str, Any]) -> tuple[int, str]:
        from moto.core.request import Request  # noqa: PLC0415 - see __init__

        headers = {"X-Amz-Target": f"TrentService.{action}", "Content-Type": "application/x-amz-json-1.1"}
        request = Request.from_primitives("POST", f"https://kms.{REGION}.amazonaws.com/", headers, json.dumps(params))
        status, _headers, body = self._response.dispatch(request)
        return int(status), str(body)

    def _refusal(self, action: str, params: dict[str, Any], *, answered: bool) -> Refusal | None:
        """Say what AWS would refuse; None: moto's answer stands, which may be a refusal that AWS gives too."""
        named = self._key(params.get("KeyId"))
        if action not in CRYPTOGRAPHIC or (params.get("KeyId") and named is None):
            return None
        if action != "Decrypt":
            return _unusable(named)
        sealing = self._backend.keys.get(_blob(params)[:KEY_ID_BYTES].decode("latin-1"))
        if sealing and named and sealing is not named:
            message = "The key ID in the request does not identify a CMK that can perform this operation."
            return Refusal("IncorrectKeyException", message)
        # whatever moto calls it, AWS has one word for a damaged blob and for another context
        return _unusable(sealing) or (None if answered else Refusal("InvalidCiphertextException"))

    def _key(self, named: object) -> Key | None:
        try:
            return self._backend.keys.get(self._backend.any_id_to_key_id(str(named)))
        except AttributeError:  # moto's, of an alias that is not there
            return None


def _adopt(backend: KmsBackend, stored: StoredKey) -> str:
    key = backend.create_key(None, "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", "mcp-functions, local", None)
    key.id, key.key_material = stored.key_id, stored.material
    key.arn = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key.id}"
    key.key_rotation_status = True
    backend.keys = {key.id: key}
    return str(key.arn)


def _unusable(key: Key | None) -> Refusal | None:
    if key and key.key_state == "PendingDeletion":
        return Refusal("KMSInvalidStateException", f"{key.arn} is pending deletion.")
    return Refusal("DisabledException", f"{key.arn} is disabled.") if key and not key.enabled else None


def _params(body: bytes | None) -> dict[str, Any] | None:
    try:
        params = json.loads(body or b"{}")
    except ValueError:
        return None
    return params if isinstance(params, dict) else None


def _invalid(action: str, params: dict[str, Any]) -> Refusal | None:
    for context in (params[name] for name in CONTEXTS if params.get(name)):
        if not isinstance(context, dict) or not all(isinstance(value, str) for value in context.values()):
            return Refusal("SerializationException")
        if len(json.dumps(context)) > MAX_CONTEXT:
            return Refusal("ValidationException", "the encryption context is too long")
    if action == "Decrypt" and not 1 <= len(_blob(params)) <= MAX_BLOB:
        allowed = f"have length greater than or equal to 1 and less than or equal to {MAX_BLOB}"
        detected = "1 validation error detected: Value at 'ciphertextBlob' failed to satisfy constraint"
        return Refusal("ValidationException", f"{detected}: Member must {allowed}")
    return None


def _for_moto(params: dict[str, Any]) -> dict[str, Any]:
    """Write each context as one member, in which no two are alike, and a key's ARN as its id, which moto knows best."""
    contexts = {name: {"": json.dumps(params[name], sort_keys=True)} for name in CONTEXTS if params.get(name)}
    key = {"KeyId": str(params["KeyId"]).rpartition(":key/")[2]} if params.get("KeyId") else {}
    return params | contexts | key


def _blob(params: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(params.get("CiphertextBlob") or "")
    except (TypeError, binascii.Error):
        return b""


def _refused(refusal: Refusal) -> HttpResponse:
    return _response(400, json.dumps({"__type": refusal.kind, "message": refusal.message}))


def _response(status: int, body: str) -> HttpResponse:
    headers = (("content-type", "application/x-amz-json-1.1"), ("x-amzn-requestid", str(uuid.uuid4())))
    return HttpResponse(status, headers, body.encode())
