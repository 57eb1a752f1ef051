"""A step has the type of what it does. This file is read by type checkers and never runs."""

from datetime import datetime
from typing import NoReturn, assert_type
from uuid import UUID

from pydantic import BaseModel

from mcp_functions import Step, tool


class Flight(BaseModel):
    number: str
    seats: list[int]


def reserve(city: str, seats: int = 1) -> Flight:
    return Flight(number=city, seats=[seats])


def pay(flight: Flight, *, key: str) -> float:
    return len(flight.number) + len(key)


async def render(pages: int) -> list[str]:
    return ["page"] * pages


@tool
def book(city: str, *, step: Step) -> str:
    flight = step("reserve", reserve, city, seats=2)
    assert_type(flight, Flight)
    assert_type(step("reserve again", reserve, city), Flight)
    assert_type(step("charge", lambda: pay(flight, key=step.key)), float)
    assert_type(step.keyed("pay", pay, flight), float)
    assert_type(step.key, str)
    assert_type(step.now(), datetime)
    assert_type(step.uuid("order"), UUID)
    assert_type(step.random("dice"), float)
    return flight.number


@tool
async def draw(pages: int, *, step: Step) -> list[str]:
    drawn = await step.wait("render", render, pages)
    assert_type(drawn, list[str])
    return drawn


def long(step: Step) -> NoReturn:
    assert_type(step.within(8)("reserve", reserve, "Rome"), Flight)
    step.shed()
