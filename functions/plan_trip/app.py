"""The low level, in the specification's words: two requests in one round, and a typed state for the next round."""

from pydantic import BaseModel

from mcp_functions import Question, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState


class Where(BaseModel):
    city: str


class When(BaseModel):
    month: str


class Draft(BaseModel):
    where: Where | None = None
    when: When | None = None


QUESTIONS = {"where": Question("Where to?", Where), "when": Question("In which month?", When)}


@tool
def plan_trip(days: int, *, answers: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
    """Plan a trip. Where it goes and when is asked in one round."""
    if any(answer["action"] != "accept" for answer in answers.values()):
        return "No trip was planned."
    draft = state.value
    draft.where = draft.where or answers.accepted("where", Where)
    draft.when = draft.when or answers.accepted("when", When)
    if draft.where and draft.when:
        return f"{days} days in {draft.where.city} in {draft.when.month}."
    missing = {key: question for key, question in QUESTIONS.items() if getattr(draft, key) is None}
    return InputRequiredResult(missing, draft)


handler = serve(plan_trip)
