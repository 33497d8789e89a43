"""The figures that an error about a context names: the window, the input, the room for output."""

import re
from typing import Final

from msgspec import Struct

_MOST_TOKENS: Final = 10**9
_NAMED: Final = re.compile(r"<(of|in|out|sum)>")


def _rows(*rows: tuple[str, str]) -> tuple[re.Pattern[str], ...]:
    """Patterns in which `<of>` stands for the window, and `<sum>` for input and output together."""
    return tuple(re.compile(_NAMED.sub(r"(?P<\1_>\\d[\\d,]{0,14})", row)) for row, _ in rows)


# Each with where it was seen. The first that names a quantity gives it. `(?P<floor>...)` marks an
# input that was counted only up to the limit: vLLM stops there.
_FIGURES: Final = _rows(
    (r"<in> \+ <out> > <of>", "Anthropic"),
    (r"<in> tokens > <of> maximum", "Anthropic"),
    (r"too long: <in>, model maximum context length: <of>", "Fireworks"),
    (r"too long: <in> tokens exceeds max_seq_len <of>", "self-hosted engines"),
    (r"too large: <out>\. .{0,30}length is <of> tokens and your request has <in>", "vLLM"),
    (r"length is <of> tokens\. .{0,20}requested <out> output tokens", "vLLM"),
    (r"prompt contains (?P<floor>at least )?<in> input tokens", "vLLM"),
    (r"(?P<floor>passed) <in> input tokens and requested <out> output", "hosts of vLLM"),
    (r"however,? you requested (?:about )?<sum> tokens \(", "OpenAI; OpenRouter"),
    (r"\b<out> (?:in|for) the (?:completion|output)\b", "OpenAI; OpenRouter"),
    (r"however,? you requested <in> tokens in the messages", "vLLM"),
    (r"length of <of> tokens\. you requested a total of <sum> tokens", "SGLang"),
    (r"\b<out> tokens for the completion", "SGLang"),
    (r"length is <of> tokens.{0,40}resulted in <in> tokens", "OpenAI"),
    (r"configured limit of <of> tokens.{0,40}resulted in <in> tokens", "OpenAI"),
    (r"max_tokens: <out> > context_window: <of> - input_tokens: <in>", "gateways of Anthropic"),
    (r"contains <in> tokens,? which exceeds the limit of <of>", "Gemini"),
    (r"must be <= <of>\. given: <in> `inputs` tokens and <out>", "Text Generation Inference"),
    (r"must have less than <of> tokens\. given: <in>", "Text Generation Inference"),
    (r"\(<in>(?: tokens)?\) exceeds the (?:available|maximum).{0,30}\(<of>", "llama.cpp; Gemini"),
    (r"\(<in>(?: tokens)?\) (?:exceeds|is longer).{0,40}length \(<of>", "SGLang; Together"),
    (r"\(<in>\) has exceeded max_prompt_tokens \(<of>", "SiliconFlow"),
    (r"token count is <in> but model only supports up to <of>", "Vertex"),
    (r"prompt length is <of> but the request contains <in>", "xAI"),
    (r"prompt token count of <in> exceeds the limit of <of>", "GitHub Copilot"),
    (r"model token limit: <of> \(requested: <in>", "Kimi"),
    (r"prompt contains <in> tokens.{0,40}too large for model with <of>", "Mistral"),
    (r"prompt has <in> tokens, but the configured context size is <of>", "hosts of DeepSeek"),
    (r"length <in> exceeds (?:the )?maximum (?:allowed )?input length (?:of )?<of>", "DeepInfra"),
    (r"current length is <in> while limit is <of>", "Cerebras"),
    (r"prompt cannot exceed <of> - received <in>", "Cohere"),
    (r"input tokens <in> cannot exceed the total tokens limit <of>", "watsonx"),
    (r"max input tokens: <of>, request input token count: <in>", "Bedrock"),
    (r"requested tokens \(<in>\) exceed (?:context window of|n_ctx) <of>", "llama-cpp-python"),
    (r"\(length <in>\) is longer than the maximum model length of <of>", "vLLM"),
    (r"n_keep: <in>>= n_ctx: <of>", "LM Studio"),
    (r"first <in> tokens when .{0,60}context length of only <of>", "LM Studio"),
    (r"input length should be \[\d+, <of>\]", "DashScope"),
    (r"max size: <of> tokens", "GitHub Models"),
    (r"context window limit \(<of>", "Cloudflare"),
    (r"context (?:length|window|size)(?: is| of)?(?: only)? \(?<of>", "any"),
    (r"maximum number of tokens allowed \(?<of>", "Gemini"),
)


class Figures(Struct, frozen=True, kw_only=True):
    """Tokens that an error names; None where it names none.

    Attributes:
        window: the limit.
        given: the input.
        most: the room asked for the output.
        is_floor: whether the input was counted only up to the limit.
    """

    window: int | None
    given: int | None
    most: int | None
    is_floor: bool


def figures_in(text: str) -> Figures:
    """The figures that a text in lower case names."""
    found: dict[str, int] = {}
    is_floor = False
    for pattern in _FIGURES:
        match = pattern.search(text)
        if match is None:
            continue
        for name, digits in match.groupdict().items():
            if name == "floor":
                is_floor = is_floor or digits is not None
            elif name not in found and (count := int(digits.replace(",", ""))) <= _MOST_TOKENS:
                found[name] = count
    most, given, together = found.get("out_"), found.get("in_"), found.get("sum_")
    if given is None and most is not None and together is not None:
        given = together - most
    return Figures(
        window=_known(found.get("of_")), given=_known(given), most=_known(most), is_floor=is_floor
    )


def _known(count: int | None) -> int | None:
    """A count, unless it is none that a request or a model can have."""
    return count if count is not None and count > 0 else None
