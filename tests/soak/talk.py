"""One conversation under faults: a client that answers, repeats, goes back, and finally gives up.

It only does what clients may do. The checker judges the outcome afterwards, from the records of all parts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tests.soak import plan
from tests.soak.wires import METHODS, Delivery

if TYPE_CHECKING:
    from tests.soak.plan import Planned
    from tests.soak.wires import Door

PATIENCE = 40  # requests of one conversation that ended in no round
REFUSED_TWICE = 2  # times that a state is presented, before the client goes back to the one before it
DEATHS = 2  # of requests that kill a process, because the first process may have been killed from outside just before
OK, REFUSED, GATEWAY_FAILED = 200, 400, 500
LOST_SECONDS = 0.05  # at most, until a client hangs up


class Point(NamedTuple):
    """Where a conversation stands: a state, the questions open with it, and the request that brought both."""

    state: str | None = None
    asked: tuple[str, ...] = ()
    name: str | None = None


class Talk:
    """A conversation, one request after the other.

    Attributes:
        planned: who and what.
        deliveries: all requests so far.
        over: whether it has ended.
        final: the request that ended it.

    """

    def __init__(self, planned: Planned, seed: int, door: Door) -> None:
        """Begin without requests."""
        self.planned, self.deliveries = planned, list[Delivery]()
        self.over, self.final = False, cast("Delivery | None", None)
        self._door, self._chance = door, plan.chance_of(seed, planned)
        self._points, self._failed, self._refused, self._dead = [Point()], 0, 0, 0
        self._acts = list(planned.acts)

    def act(self) -> None:
        """Send the next request, or the next few."""
        point = self._points[-1]
        before = len(self.deliveries)
        self._befall(self._acts[0] if self._acts else plan.fault(self._chance), point)
        if self._acts and all(map(_came_through, self.deliveries[before:])):
            del self._acts[0]

    def _befall(self, what: str, point: Point) -> None:
        match what:
            case "lost":
                delivery = self._next(what, point)
                self._door.lose(delivery, self._params(point), self._chance.uniform(0, LOST_SECONDS))
            case "rewound":
                self._points.append(self._chance.choice(self._points))
                self._go_on(what, self._points[-1])
            case "stranger" if point.state:
                person = plan.PEOPLE[1 - plan.PEOPLE.index(self.planned.person)]
                self._door.deliver(self._next(what, point, person), self._params(point))
            case "unheard":
                self._door.deliver(self._next(what, point), self._params(point))
            case "late" if len(self._points) > 1:
                early = self._chance.choice(self._points[:-1])
                self._door.deliver(self._next(what, early), self._params(early))
            case "duplicate":
                self._go_on(what, point, twice=True)
            case _:
                self._go_on("", point)

    def again(self) -> None:
        """Deliver what ended it once more: the answer must be the same."""
        (point,) = [point for point in self._points if self.final and point.name == self.final.parent][:1]
        self._door.deliver(self._next("again", point), self._params(point))

    def _go_on(self, what: str, point: Point, *, twice: bool = False) -> None:
        delivery, twin = self._next(what, point), None
        if twice:
            other = Delivery(**{**vars(delivery), "name": delivery.name + "+"})
            self.deliveries.append(other)
            twin = threading.Thread(target=self._deliver_apart, args=(other, self._params(point)))
            twin.start()
        kill = self._kill()
        state = self._door.deliver(delivery, self._params(point), kill)
        if twin:
            twin.join()
        self._heard(delivery, point, state, kill=bool(kill))

    def _deliver_apart(self, delivery: Delivery, params: dict[str, Any]) -> None:
        self._door.deliver(delivery, params)
        self._door.close()

    def _heard(self, delivery: Delivery, point: Point, state: str | None, *, kill: bool) -> None:
        if state and delivery.result.get("resultType") == "input_required":
            self._points.append(Point(state, tuple(delivery.result.get("inputRequests", {})), delivery.name))
            self._refused = 0
            return
        if delivery.result.get("resultType") == "complete":
            self.over, self.final = True, delivery
            return
        self._failed += 1
        self._dead += kill and (delivery.status == GATEWAY_FAILED or (bool(delivery.error) and delivery.status == OK))
        if delivery.status == REFUSED:
            self._refused += 1
            if self._refused > REFUSED_TWICE:
                self._refused = 0
                self._points = [one for one in self._points if one != point] or [Point()]
        if self._failed >= PATIENCE:
            self.over, self.final = True, delivery

    def _kill(self) -> str:
        due = self._dead < DEATHS and len(self.deliveries) > self.planned.fatal
        return self.planned.kill if due else ""

    def _next(self, what: str, point: Point, person: str = "") -> Delivery:
        number = len(self.deliveries)
        delivery = Delivery(
            name=f"{self.planned.nonce}.{number}",
            talk=self.planned.number,
            what=what,
            parent=point.name,
            person=person or self.planned.person,
            method=METHODS[self.planned.name],
            id=f"{self.planned.nonce}/{number}",
            broken=self.planned.broken,
        )
        self.deliveries.append(delivery)
        return delivery

    def _params(self, point: Point) -> dict[str, Any]:
        said = {"size": {"size": self.planned.size}, "consent": {"agreed": True}}
        answers = {key: {"action": "accept", "content": said[key]} for key in point.asked}
        called: dict[str, Any] = {"uri": f"note://{self.planned.nonce}"}
        if self.planned.name == "order":
            called = {"name": "order", "arguments": {"nonce": self.planned.nonce}}
        state = {"requestState": point.state, "inputResponses": answers} if point.state else {}
        return {**called, **state}


def _came_through(delivery: Delivery) -> bool:
    """Return whether the response is a result or a refusal. After a failure the client repeats the request."""
    return delivery.status == REFUSED or (delivery.status == OK and not delivery.error)
