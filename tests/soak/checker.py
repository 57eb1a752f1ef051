"""The rules that every run must keep under all faults: for conversations, steps, errors and processes.

The checker reads the responses and the journal of the functions, and knows nothing of the faults. A breach names the
conversation and its requests, without their content.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tests.soak import growth, plan
from tests.soak.breach import Breach
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.soak.run import Seen
    from tests.soak.wires import Delivery

BARE = {"message": "Internal Server Error"}  # API Gateway's own, when the endpoint's process dies
ENDED = {"code": -32603, "message": "The function ended before it answered; whether it acted is unknown"}
LATE = {"code": -32603, "message": "The function did not answer in time"}
BUSY = {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}
REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
LIFETIME = 600.0  # seconds of a state
SLACK = 1.5  # seconds: births are whole ones
GATEWAY, TIMEOUT, LEAST = 30.0, 28.0, 1.0  # seconds: of the gateway, of the endpoint, and that it waits at least


def check(seen: Seen) -> list[Breach]:
    """Report a breach."""
    return list(_Checker(seen).breaches())


class _Checker:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._named = {delivery.name: delivery for delivery in seen.deliveries}
        self._lines: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for line in seen.journal:
            if line.get("d"):
                self._lines[line["d"]][line["kind"]].append(line)

    @cached_property
    def _places(self) -> dict[str, dict[str, Any]]:
        return {line["env"]: line for line in self._seen.journal if line["kind"] == "born"}

    def breaches(self) -> Iterator[Breach]:
        for planned in self._seen.planned:
            if planned.number not in self._seen.finals:
                yield Breach("a conversation without an end", planned.number, planned.nonce)
        for delivery in self._seen.deliveries:
            for what in (*self._answer(delivery), *self._work(delivery), *self._clocks(delivery)):
                yield Breach(what, delivery.talk, f"{delivery.name} after {delivery.parent}")
        yield from self._payments()
        yield from self._causes()
        yield from growth.breaches(self._seen)

    # ---- What a client heard

    def _answer(self, delivery: Delivery) -> Iterator[str]:
        message = delivery.message
        if delivery.what == "lost":
            return
        if delivery.status is None or message is None:
            yield "no answer"
            return
        if (delivery.status, message) == (500, BARE):
            return
        if message.get("id") != delivery.id:
            yield "the answer to another request"
            return
        try:
            wire.check(message | self._state(delivery), delivery.method)
        except wire.CHECK_ERRORS:
            yield "an answer that the specification does not know"
        if not _is_honest(delivery):
            yield "an error that is not honest"
        if delivery.what == "stranger":
            if delivery.result:
                yield "a stranger's state was taken"
        elif delivery.result:
            yield from self._told(delivery)

    def _told(self, delivery: Delivery) -> Iterator[str]:
        planned = self._seen.planned[delivery.talk]
        if delivery.result["resultType"] == "input_required":
            asked = delivery.result.get("inputRequests", {})
            wanted = {"size": f"{planned.nonce}: ", "consent": f"{planned.nonce}: size {planned.size} from "}
            for key, request in asked.items():
                if not request["params"]["message"].startswith(wanted[key]):
                    yield "somebody else's question"
            return
        said = [text["text"] for text in (*delivery.result.get("content", ()), *delivery.result.get("contents", ()))]
        if said != [self._right(delivery)]:
            yield "a wrong result"

    def _right(self, delivery: Delivery) -> str:
        planned = self._seen.planned[delivery.talk]
        if planned.name == "note":
            return f"{planned.nonce}: a note for {planned.person} about size {planned.size}"
        steps = {line["step"]: line.get("result") for one in self._lineage(delivery) for line in self._steps(one)}
        shelf, receipt = steps.get("reserve"), steps.get("charge")
        return f"{planned.nonce}: for {planned.person}, size {planned.size} from {shelf}, {receipt}"

    def _state(self, delivery: Delivery) -> dict[str, Any]:
        """Put a state back, for the judges: it was not kept."""
        told = delivery.message or {}
        return {} if delivery.born is None else {"result": {**told["result"], "requestState": "ks1."}}

    # ---- What was done

    def _work(self, delivery: Delivery) -> Iterator[str]:
        begun = Counter(line["folder"] for line in self._lines[delivery.name]["begin"])
        if any(times > 1 for times in begun.values()):
            yield "a request that was run twice"
        nonce, before = self._seen.planned[delivery.talk].nonce, set[str]()
        for one in reversed(self._lineage(delivery)[1:]):
            before |= {line["step"] for line in self._steps(one)}
        for line in self._steps(delivery):
            if line["step"] in before:
                yield "a recorded step was repeated"
            if line["nonce"] != nonce:
                yield "a step of another conversation"
            before.add(line["step"])
        if delivery.what == "stranger" and self._steps(delivery):
            yield "a stranger's state was taken"

    def _payments(self) -> Iterator[Breach]:
        keys: dict[tuple[int, str], set[str]] = defaultdict(set)
        for delivery in self._seen.deliveries:
            for line in self._steps(delivery):
                if line["step"] == "charge":
                    keys[delivery.talk, self._lineage(delivery)[-1].name].add(line["key"])
        for (talk, root), used in keys.items():
            if len(used) > 1:
                yield Breach("one payment under two keys", talk, f"all that goes back to {root}")

    def _steps(self, delivery: Delivery) -> list[dict[str, Any]]:
        return self._lines[delivery.name]["step"]

    def _lineage(self, delivery: Delivery) -> list[Delivery]:
        """Return a request and those whose answers led to it, back to the first."""
        found = [delivery]
        while (parent := found[-1].parent) is not None:
            found.append(self._named[parent])
        return found

    # ---- Clocks: who refused a state had to, and who had to did

    def _clocks(self, delivery: Delivery) -> Iterator[str]:
        if delivery.error == LATE and delivery.seconds < self._patience(delivery) - SLACK:
            yield "a function was given up too early"
        if delivery.parent is None or delivery.what == "stranger":
            return
        parent = self._named[delivery.parent]
        sealed, opened = self._at(parent, "end"), self._at(delivery, "begin")
        if not sealed or not opened or parent.born is None:
            if delivery.error.get("code") == REFUSED["code"]:
                yield "a state was refused by nobody"
            return
        ahead = max(parent.born, sealed) - opened
        refused = delivery.error.get("code") == REFUSED["code"]
        if refused and ahead < plan.TOLERATED - SLACK and opened - sealed < LIFETIME - SLACK:
            yield "a state was refused within the tolerance of clocks"
        if delivery.result and sealed - opened > plan.TOLERATED + SLACK + delivery.seconds + parent.seconds:
            yield "a state was taken beyond the tolerance of clocks"

    def _patience(self, delivery: Delivery) -> float:
        """Say how long the endpoint waits, by its own clock: it counts from when the gateway says a request began."""
        begun = [line for line in self._lines[delivery.name]["begin"] if line["folder"] == "mcp"]
        ahead = float(self._places[begun[0]["env"]]["skew"]) if begun else 0.0
        return max(LEAST, min(TIMEOUT, GATEWAY - ahead)) if 0 < ahead < GATEWAY else TIMEOUT

    def _at(self, delivery: Delivery, kind: str) -> float:
        """Say when a handler began or ended, by its own clock; 0 if it did not."""
        lines = [line for line in self._lines[delivery.name][kind] if line["folder"] != "mcp"]
        return lines[0]["t"] + self._places[lines[0]["env"]]["skew"] if lines else 0.0

    # ---- Errors have causes

    def _causes(self) -> Iterator[Breach]:
        heard, journal = self._seen.deliveries, self._seen.journal
        ended = [line for line in journal if line["kind"] == "ended" and line["error"]]
        died = Counter("mcp" if line["folder"] == "mcp" else "handler" for line in ended)
        weather = sum(line["kind"] == "kms" and line["weather"] != "fine" for line in journal)
        for what, errors, causes in (
            ("the endpoint died", sum(one.message == BARE for one in heard), died["mcp"]),
            ("a function died", sum(one.error == ENDED for one in heard), died["handler"]),
            ("KMS was away", sum(one.status == 503 for one in heard), weather),
        ):
            if errors > causes:
                yield Breach("errors without a cause", None, f"{errors} times {what!r}, which happened {causes} times")


def _is_honest(delivery: Delivery) -> bool:
    """Say whether an answer is a result, or an error with the status that belongs to it."""
    match delivery.status, delivery.error:
        case (200, error):
            return bool(delivery.result) or error in (ENDED, LATE)
        case (503, error) if error == BUSY:
            return int(delivery.headers.get("retry-after", "0")) > 0
        case (400, error):
            return error == REFUSED
    return False
