"""The floor: as little as a strict handler of the standard library can do. A limit, not a design.

It checks what the specification makes a server check of a call (version, headers against body, argument types) and
answers in full; it knows one tool, logs nothing and traces nothing.
"""

import json
import os

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
HEADERS = {"content-type": "application/json", "cache-control": "no-store"}


def served(result_of):
    def handler(event, _context):
        headers, message = event["headers"], json.loads(event["body"])
        params = message["params"]
        meta = params["_meta"]
        if headers["mcp-protocol-version"] != meta[META] or meta[META] != VERSION or CAPABILITIES not in meta:
            return {"statusCode": 400, "headers": HEADERS, "body": "{}"}
        if headers["mcp-method"] != message["method"] or headers.get("mcp-name") != params.get("name"):
            return {"statusCode": 400, "headers": HEADERS, "body": "{}"}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result_of(params)}
        return {"statusCode": 200, "headers": HEADERS, "body": json.dumps(answer)}

    return handler


def text(value, **more):
    return {"resultType": "complete", "content": [{"type": "text", "text": str(value)}], **more}


def add():
    def result(params):
        given = params["arguments"]
        if given.keys() != {"a", "b"} or type(given["a"]) is not int or type(given["b"]) is not int:
            return text("a and b are whole numbers", isError=True)
        total = given["a"] + given["b"]
        return text(total, structuredContent={"result": total})

    return served(result)


def listing(tools):
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["text", "count"],
    }
    described = "Do one of many things to a text, so many times."
    offered = [
        {"name": f"tool_{number:03}", "description": described, "inputSchema": schema} for number in range(tools)
    ]
    rest = '"result": ' + json.dumps({"resultType": "complete", "tools": offered, "ttlMs": 60000}) + "}"

    def handler(event, _context):
        headers, message = event["headers"], json.loads(event["body"])
        if headers["mcp-protocol-version"] != VERSION or headers["mcp-method"] != message["method"]:
            return {"statusCode": 400, "headers": HEADERS, "body": "{}"}
        body = f'{{"jsonrpc": "2.0", "id": {json.dumps(message["id"])}, {rest}'
        return {"statusCode": 200, "headers": HEADERS, "body": body}

    return handler


def echo():
    def result(params):
        given = params["arguments"]
        if given.keys() != {"text"} or type(given["text"]) is not str:
            return text("text is a text", isError=True)
        return text(len(given["text"]), structuredContent={"result": len(given["text"])})

    return served(result)


def ask():
    return _asking(("seat",), lambda city, answers: f"Booked: {city}, {answers[0]} seat.", "seat")


def chain(questions):
    keys = [f"leg{leg}" for leg in range(questions)]
    return _asking(keys, lambda city, answers: " > ".join([city, *answers]), "place")


def state():
    return _remembering(lambda kilobytes: [f"{row:08x}" * 32 for row in range(kilobytes * 4)])


def rows():
    def listed(kilobytes):
        every = range(kilobytes * 16)
        return [{"id": row, "name": f"{row:08x}", "price": row / 8, "free": True} for row in every]

    return _remembering(listed)


def _remembering(listed):
    import base64

    seal, opened = _sealed()

    def result(params):
        if "requestState" in params:
            draft = json.loads(opened(base64.urlsafe_b64decode(params["requestState"])))
            return text(f"{len(draft['rows'])} rows, {params['inputResponses']['seat']['content']['seat']}")
        rows = listed(params["arguments"]["kilobytes"])
        token = base64.urlsafe_b64encode(seal(json.dumps({"rows": rows}).encode())).decode()
        return question("seat", "Where would you like to sit?", "seat", token)

    return served(result)


def _asking(keys, done, field):
    """Seal the answers so far, with the arguments, under AES-256-GCM; the key is KMS's, asked for when it is needed."""
    import base64

    seal, opened = _sealed()

    def result(params):
        answers, given = [], params["arguments"]
        if "requestState" in params:
            claims = json.loads(opened(base64.urlsafe_b64decode(params["requestState"])))
            answers = claims["answers"]
            if claims["arguments"] != given:
                return text("other arguments", isError=True)
            answers.append(params["inputResponses"][keys[len(answers)]]["content"][field])
        if len(answers) == len(keys):
            return text(done(given["city"], answers))
        claims = json.dumps({"arguments": given, "answers": answers}).encode()
        token = base64.urlsafe_b64encode(seal(claims)).decode()
        message = f"Where would you like to sit on the way to {given['city']}?"
        return question(keys[len(answers)], message, field, token)

    return served(result)


def question(key, message, field, token):
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    asked = {key: {"method": "elicitation/create", "params": params}}
    return {"resultType": "input_required", "inputRequests": asked, "requestState": token}


def _sealed():
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    known: list = []

    def cipher():
        if not known:
            known.append(AESGCM(data_key()))
        return known[0]

    def seal(data):
        nonce = os.urandom(12)
        return nonce + cipher().encrypt(nonce, data, b"")

    return seal, lambda token: cipher().decrypt(token[:12], token[12:], b"")


def data_key():
    """Ask KMS for a data key: SigV4 by hand, over a socket of http.client's."""
    import base64
    import hashlib
    import hmac
    import http.client
    import time

    host = os.environ["AWS_ENDPOINT_URL_KMS"].removeprefix("http://")
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    context = {"purpose": "mcp-request-state"}
    wanted = {"KeyId": os.environ["BENCH_KEY"], "KeySpec": "AES_256", "EncryptionContext": context}
    body, day, scope = json.dumps(wanted), stamp[:8], f"{stamp[:8]}/us-east-1/kms/aws4_request"
    signed = "host;x-amz-date;x-amz-target"
    target = "TrentService.GenerateDataKey"
    digest = hashlib.sha256(body.encode()).hexdigest()
    canonical = f"POST\n/\n\nhost:{host}\nx-amz-date:{stamp}\nx-amz-target:{target}\n\n{signed}\n{digest}"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    for part in (day, "us-east-1", "kms", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
    headers = {
        "host": host,
        "x-amz-date": stamp,
        "x-amz-target": target,
        "content-type": "application/x-amz-json-1.1",
        "authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}",
    }
    connection = http.client.HTTPConnection(host, timeout=2)
    connection.request("POST", "/", body, headers)
    return base64.b64decode(json.load(connection.getresponse())["Plaintext"])
