"""How much a model should think: budgets of tokens and words of effort, one in terms of the other."""

from pipeline.request import Reasoning, RequestOptions

OFF = "none"
"""The effort that asks for no reasoning."""

WORDS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The efforts, from none to the most."""

_UP_TO = ((1_024, "minimal"), (4_096, "low"), (12_000, "medium"), (32_000, "high"))
_BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 8_192, "high": 24_576, "xhigh": 32_768, "max": 65_536}


def effort_of_budget(budget: int) -> str:
    """The effort that a budget of tokens comes to."""
    return next((word for most, word in _UP_TO if budget <= most), "xhigh")


def budget_of_effort(effort: str) -> int:
    """The budget of tokens that an effort comes to; none: 0."""
    return _BUDGETS.get(effort, 0)


def effort_of(reasoning: Reasoning | None) -> str:
    """The effort that a client asks for; empty: it does not say, or leaves it to the model."""
    if reasoning is None:
        return ""
    if reasoning.enabled is False:
        return OFF
    if reasoning.effort:
        return reasoning.effort
    return "" if reasoning.budget is None else effort_of_budget(reasoning.budget)


def is_off(reasoning: Reasoning | None, options: RequestOptions) -> bool:
    """Whether no reasoning is wanted, by the policy or else by the client."""
    return (effort_of(reasoning) if options.effort is None else options.effort) == OFF


def effort_under(reasoning: Reasoning | None, options: RequestOptions) -> str:
    """The effort to ask for: a policy's, else the client's; empty: none is asked for."""
    if is_off(reasoning, options):
        return options.off_effort
    return effort_of(reasoning) if options.effort is None else options.effort
