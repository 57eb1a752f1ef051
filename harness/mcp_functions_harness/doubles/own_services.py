"""An author's own buckets, queues and secrets on this machine, by moto, a library that imitates AWS.

    HTTP request of an AWS client -> OwnServices.answer: as if it had gone to AWS -> moto's service

All services have one address. The request's signature names the service, e.g. "…/us-east-1/sqs/aws4_request".
"""

import re
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness.environment import ACCOUNT, REGION
from mcp_functions_harness.loopback import HttpRequest, HttpResponse
from mcp_functions_harness.problems import not_installed

SERVICES = ("s3", "sqs", "secretsmanager")
SIGNED_FOR = re.compile(r"Credential=[^,]*/(\w+)/aws4_request")
NOT_COPIED = {"content-length", "connection", "date", "transfer-encoding"}  # our server writes them
TYPES = ("AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SecretsManager::Secret")
QUEUE_ATTRIBUTES = ("VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod", "FifoQueue")
UNSET = "local"  # the value of a secret that a deployment generates


class OwnResource(NamedTuple):
    """A resource that a template declares."""

    type: str  # one of `TYPES`
    name: str
    properties: JSONObject


class OwnServices:
    """S3, SQS and Secrets Manager, with the resources that a template declares, and nothing of an earlier run.

    moto keeps its services for the whole process, so the last object that was made has them.
    """

    def __init__(self, resources: Sequence[OwnResource]) -> None:
        """Serve these resources."""
        self._lock = Lock()
        self._resources = resources
        self.reset()

    def reset(self) -> None:
        """Begin again, with resources that are empty. The first request makes them: moto imports slowly."""
        self._is_made = False

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request."""
        service = SIGNED_FOR.search(request.header("authorization"))
        if not request.is_signed or service is None or service[1] not in SERVICES:
            return HttpResponse(403, (("content-type", "text/plain"),), b"AccessDenied")
        with self._lock:
            if not self._is_made:
                self._make()
            return _ask_moto(service[1], request)

    def _make(self) -> None:
        try:
            from moto.backends import get_backend
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error

        backends: Any = {name: get_backend(name) for name in SERVICES}  # type: ignore[call-overload]
        for backend in backends.values():
            backend.reset()
        for resource_type, name, properties in self._resources:
            if resource_type == "AWS::S3::Bucket":
                backends["s3"][ACCOUNT]["aws"].create_bucket(name, REGION)
            elif resource_type == "AWS::SQS::Queue":
                attributes = {key: str(value) for key, value in properties.items() if key in QUEUE_ATTRIBUTES}
                backends["sqs"][ACCOUNT][REGION].create_queue(name, region=REGION, **attributes)
            else:
                value = str(properties.get("SecretString", UNSET))
                secrets = backends["secretsmanager"][ACCOUNT][REGION]
                secrets.create_secret(name, value, None, None, None, None, None, [], force_overwrite=True)
        self._is_made = True


def _ask_moto(service: str, request: HttpRequest) -> HttpResponse:
    """Give moto a request as if its client had sent it to AWS."""
    from botocore.awsrequest import AWSPreparedRequest
    from moto.core.botocore_stubber import BotocoreStubber

    url = f"https://{service}.{REGION}.amazonaws.com{request.target}"
    headers: Any = {name: value for name, value in request.headers if name.lower() != "host"}
    prepared = AWSPreparedRequest(request.method, url, headers, request.body or b"", stream_output=False)
    answered: Any = BotocoreStubber().process_request(prepared)
    status, answer_headers, body = answered
    content = body.encode() if isinstance(body, str) else bytes(body)
    kept = tuple((str(name), str(value)) for name, value in answer_headers.items() if name.lower() not in NOT_COPIED)
    return HttpResponse(int(status), kept, content)
