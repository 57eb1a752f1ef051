"""The least cost of a round whose state is sealed as envelope.md requires: the floor plus that seal.

A token has its own key and a commitment to it, a salt that is safe in cloned snapshots, the wrapped key, and one
spelling. It holds its principal, its expiry, and the digests of arguments and question. Every server with these
properties pays this cost; the other floor seals with one key and has fewer properties.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import time

import floor

LABEL = b"ks1/request-state\0\0\5bench\0\5bench\0\0011"
INFO = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0"
WRAPPED = bytes(184)  # as many as KMS's have
HEAD = bytes(12) + WRAPPED
URLSAFE = bytes.maketrans(b"+/", b"-_")
STANDARD = bytes.maketrans(b"-_+/=", b"+/\0\0\0")


def ask():
    return _asking(("seat",), lambda city, answers: f"Booked: {city}, {answers[0]} seat.", "seat")


def chain(questions):
    keys = [f"leg{leg}" for leg in range(questions)]
    return _asking(keys, lambda city, answers: " > ".join([city, *answers]), "place")


def _asking(keys, done, field):
    seal, opened = _sealed()

    def result(params):
        answers, given, now = {}, params["arguments"], int(time.time() * 1000)
        bound = ["bench", "tools/call", params["name"], _digest(given), None]
        if "requestState" in params:
            claims = json.loads(opened(params["requestState"]))
            if claims["for"] != bound or now >= claims["exp"]:
                return floor.text("not for this request", isError=True)
            answers = claims["answers"]
            for key, print_ in claims["asked"].items():
                answers[key] = [print_, params["inputResponses"][key]["content"][field]]
        places = [answer for _print, answer in answers.values()]
        if len(answers) == len(keys):
            return floor.text(done(given["city"], places))
        key = keys[len(answers)]
        message = f"Where would you like to sit on the way to {given['city']}?"
        asked = floor.question(key, message, field, "")
        claims = {
            "for": bound,
            "exp": now + 600_000,
            "answers": answers,
            "asked": {key: _digest(asked["inputRequests"])},
        }
        return {**asked, "requestState": seal(json.dumps(claims).encode())}

    return floor.served(result)


def _digest(value):
    digest = hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()


def _sealed():
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA512
    from cryptography.hazmat.primitives.hmac import HMAC

    known: list = []
    context = LABEL + HEAD

    def keys():
        if not known:
            expands = HMAC(floor.data_key(), SHA512())
            known.extend((expands, HMAC(mac(expands, b"ks1/hedge\0\1")[:32], SHA512())))
        return known

    def mac(keyed, message):
        one = keyed.copy()
        one.update(message)
        return one.finalize()

    def derived(salt):
        info = INFO + salt + context
        first = mac(keys()[0], info + b"\1")
        return first[:32], first[32:44], first[44:] + mac(keys()[0], first + info + b"\2")[:12]

    def seal(data):
        salt = mac(keys()[1], os.urandom(32) + len(context).to_bytes(4, "big") + context + data)[:24]
        key, nonce, commitment = derived(salt)
        body = HEAD + salt + commitment + AESGCM(key).encrypt(nonce, data, None)
        return "ks1." + binascii.b2a_base64(body, newline=False).translate(URLSAFE).rstrip(b"=").decode()

    def opened(token):
        text = token[4:].encode().translate(STANDARD)
        body = binascii.a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
        at = len(HEAD)
        key, nonce, commitment = derived(body[at : at + 24])
        if body[:at] != HEAD or not hmac.compare_digest(commitment, body[at + 24 : at + 56]):
            raise ValueError(token)
        return AESGCM(key).decrypt(nonce, body[at + 56 :], None)

    return seal, opened
