"""KMS on this machine, with the project's one key, by moto, a library that imitates AWS.

`KmsApi.answer` calls moto, and corrects where AWS answers otherwise:

    1. A signature is missing, or a parameter is not valid. AWS refuses the request, moto may accept it.
    2. A key is disabled, or did not encrypt the ciphertext. AWS refuses it, moto uses it.
    3. Two encryption contexts differ. moto joins the texts of a context, and may take the two for equal.
    4. A ciphertext is damaged, or has another context. AWS has one error for it, moto has several.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from mcp_functions_harness.doubles.moto_service import OK, Protocol
from mcp_functions_harness.environment import ACCOUNT, REGION
from mcp_functions_harness.loopback import read_object
from mcp_functions_harness.problems import not_installed

if TYPE_CHECKING:
    from moto.kms.models import Key, KmsBackend

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions_harness.doubles.keyfile import StoredKey
    from mcp_functions_harness.loopback import HttpRequest, HttpResponse

MAX_REQUEST = 1024 * 1024  # bytes of a request's body
MAX_CIPHERTEXT = 6144  # bytes: "CiphertextBlob … Maximum length of 6144"
MAX_CONTEXT = 8192  # characters of an encryption context as JSON
KEY_ID_BYTES = 36  # a ciphertext of moto begins with the id of its key
# The operations that use a key, and fail with a disabled one.
CRYPTOGRAPHIC = frozenset({"Encrypt", "Decrypt", "ReEncrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext"})
# The parameters with an encryption context: names and texts that Decrypt must repeat as Encrypt had them.
CONTEXT_PARAMETERS = ("EncryptionContext", "SourceEncryptionContext", "DestinationEncryptionContext")
PROTOCOL = Protocol("kms", "TrentService.", "1.1")


class KmsError(Exception):
    """An error of KMS; `code` is its name in the API."""

    def __init__(self, code: str, message: str = "") -> None:
        """Take the code and the message."""
        super().__init__(message)
        self.code = code


class KmsApi:
    """Answers KMS requests with one existing key, whose ARN is `arn`."""

    def __init__(self, stored: StoredKey) -> None:
        """Give moto the key.

        Raises:
            Problem: moto is not installed.
        """
        try:
            from moto.kms.models import KmsBackend
            from moto.kms.responses import KmsResponse
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error

        class Response(KmsResponse):
            kms_backend = KmsBackend(REGION, ACCOUNT)  # moto's own is of the whole process

        self._backend = Response.kms_backend
        self._response = Response
        self.arn = _install(self._backend, stored)

    def warm(self) -> None:
        """Call moto once: it imports what it needs, which takes a second that no client shall wait."""
        PROTOCOL.ask(self._response, "ListKeys", {})

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request."""
        operation = request.header("x-amz-target").removeprefix(PROTOCOL.target)
        if not request.is_signed:
            return PROTOCOL.error(400, "MissingAuthenticationTokenException", "")
        try:
            return self._run(operation, _read_params(operation, request.body))
        except KmsError as error:
            return PROTOCOL.error(400, error.code, str(error))

    def _run(self, operation: str, params: JSONObject) -> HttpResponse:
        self._check_keys(operation, params)
        try:
            status, body = PROTOCOL.ask(self._response, operation, _for_moto(params))
        except NotImplementedError:
            raise KmsError("UnknownOperationException") from None
        except Exception as error:  # noqa: BLE001 - moto raises any exception
            return PROTOCOL.error(500, "KMSInternalException", type(error).__name__)
        if operation == "Decrypt" and status != OK and not self._names_unknown_key(params):
            raise KmsError("InvalidCiphertextException")
        return PROTOCOL.response(status, body)

    def _check_keys(self, operation: str, params: JSONObject) -> None:
        """Refuse a request for a key that it may not use."""
        if operation not in CRYPTOGRAPHIC or self._names_unknown_key(params):
            return  # moto reports an unknown key as AWS does
        named_key = key = self._named_key(params)
        if operation == "Decrypt":
            key = self._backend.keys.get(_ciphertext(params)[:KEY_ID_BYTES].decode("latin-1"))
            if key and named_key and key is not named_key:
                raise KmsError(
                    "IncorrectKeyException",
                    "The key ID in the request does not identify a CMK that can perform this operation.",
                )
        if key and key.key_state == "PendingDeletion":
            raise KmsError("KMSInvalidStateException", f"{key.arn} is pending deletion.")
        if key and not key.enabled:
            raise KmsError("DisabledException", f"{key.arn} is disabled.")

    def _names_unknown_key(self, params: JSONObject) -> bool:
        return bool(params.get("KeyId")) and self._named_key(params) is None

    def _named_key(self, params: JSONObject) -> Key | None:
        """Find the key that a request names by its id, its ARN or an alias; None if there is no such key or name."""
        try:
            return self._backend.keys.get(self._backend.any_id_to_key_id(str(params.get("KeyId"))))
        except AttributeError:  # moto raises it for an unknown alias
            return None


def _install(backend: KmsBackend, stored: StoredKey) -> str:
    """Make the project's key the only key of moto; return its ARN."""
    key = backend.create_key(None, "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", "mcp-functions, local", None)
    key.id = stored.key_id
    key.key_material = stored.material
    key.arn = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key.id}"
    key.key_rotation_status = True
    backend.keys = {key.id: key}
    return str(key.arn)


def _read_params(operation: str, body: bytes | None) -> JSONObject:
    """Read the parameters of a request, and refuse those that AWS refuses."""
    params = read_object(body or b"{}")
    if params is None:
        raise KmsError("SerializationException")
    for name in CONTEXT_PARAMETERS:
        context = params.get(name) or {}
        if not isinstance(context, dict) or not all(isinstance(value, str) for value in context.values()):
            raise KmsError("SerializationException")
        if len(json.dumps(context)) > MAX_CONTEXT:
            raise KmsError("ValidationException", "the encryption context is too long")
    if operation == "Decrypt" and not 1 <= len(_ciphertext(params)) <= MAX_CIPHERTEXT:
        allowed = f"have length greater than or equal to 1 and less than or equal to {MAX_CIPHERTEXT}"
        detected = "1 validation error detected: Value at 'ciphertextBlob' failed to satisfy constraint"
        raise KmsError("ValidationException", f"{detected}: Member must {allowed}")
    return params


def _for_moto(params: JSONObject) -> JSONObject:
    """Copy the parameters as moto needs them."""
    changed = dict(params)
    for name in CONTEXT_PARAMETERS:
        if params.get(name):
            # One text, because moto joins several.
            changed[name] = {"": json.dumps(params[name], sort_keys=True)}
    if params.get("KeyId"):
        changed["KeyId"] = str(params["KeyId"]).rpartition(":key/")[2]  # the id of an ARN
    return changed


def _ciphertext(params: JSONObject) -> bytes:
    """Return the ciphertext of a request; b"" if it is missing, or not base64."""
    try:
        return base64.b64decode(params.get("CiphertextBlob") or "")
    except (TypeError, ValueError):
        return b""
