"""The page that compares: its prices are done again from the prices of the costs, and its cells have a source."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks import cost
from tests.docs.pages import Page

PAGE = Page.named("this-or.md")
COSTS = Page.named("costs.md")


def section(heading: str) -> str:
    return PAGE.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def price(of: str) -> tuple[float, float, str]:
    """Return the prices of 10,000 and of 1,000,000 calls, and how the second is computed."""
    (row,) = (line for line in section("Prices").splitlines() if line.startswith(f"| {of}"))
    few, many, how = [cell.strip() for cell in row.strip("|").split("|")][1:4]
    return float(few), float(many), how


def test_the_price_of_this_is_a_warm_round_of_the_costs_and_the_key() -> None:
    (warm,) = re.findall(rf"^\| {re.escape(cost.WARM_ROUNDS)} \| .* x ([\d.]+) USD", COSTS.text, re.MULTILINE)
    few, many, how = price("this")
    assert f"1 000 000 x {warm} USD / 1 000 000" in how
    assert (few, many) == (round(float(warm) / 100 + cost.KMS_KEY, 2), round(float(warm) + cost.KMS_KEY, 2))


@pytest.mark.parametrize("of", ["AgentCore Gateway", "a Lambda of 512 MB"])
def test_a_price_by_the_call_is_its_sum(of: str) -> None:
    few, many, how = price(of)
    (written,) = re.findall(r"1 000 000 x [\d.]+ USD / [\d ]*\d", how)
    assert many == round(cost.reckoned(written), 2)
    assert few == round(cost.reckoned(written) / 100, 2)


def test_the_price_of_a_lambda_is_that_of_the_costs() -> None:
    call = cost.LAMBDA_REQUEST + 1_000_000 * cost.GB * 0.050 * cost.GB_SECOND["x86_64"]
    assert f"x {call:.7f} USD" in price("a Lambda of 512 MB")[2]


def test_the_price_of_containers_is_that_of_the_costs() -> None:
    few, many, how = price("two Fargate tasks")
    hour = cost.TASK_HOUR + cost.BALANCER_HOUR
    assert f"{cost.HOURS} hours x {hour:.5f} USD" in how
    assert few == many == round(cost.HOURS * hour, 2)


def test_every_number_of_a_source_is_in_the_list_of_sources() -> None:
    text, _, sources = PAGE.text.partition("\n## Sources\n")
    listed = set(re.findall(r"^(\d)\. ", sources, re.MULTILINE))
    assert set(re.findall(r"\[(\d)\]", text)) == listed
