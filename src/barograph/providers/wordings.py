"""The words in which providers refuse a request, as data: each row with where it was seen.

All are matched against lower-case text with single spaces and without backslashes. Gaps have a
bound, so that a hostile text costs no more than its length.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple


class Wording(NamedTuple):
    """One way to say it."""

    pattern: re.Pattern[str]
    source: str


def _rows(*rows: tuple[str, str]) -> tuple[Wording, ...]:
    return tuple(Wording(re.compile(pattern), source) for pattern, source in rows)


def says(wordings: Iterable[Wording], text: str) -> bool:
    """Whether a text uses one of the wordings."""
    return any(wording.pattern.search(text) for wording in wordings)


# Names of exception classes, codes and types: exact, in lower case.

OVERFLOW_NAMES: Final = frozenset(
    {
        "contextoverflowerror",  # langchain-core, the base of each integration's own
        "contextwindowexceedederror",  # LiteLLM
        "contextwindowoverflowexception",  # Strands
    }
)
OVERFLOW_CODES: Final = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Groq, Cerebras, DeepSeek's compatible hosts
        "context_window_exceeded",  # gateways
        "model_context_window_exceeded",  # z.ai, as the type of an in-band error
        "exceed_context_size_error",  # llama.cpp
        "model_max_prompt_tokens_exceeded",  # GitHub Copilot
        "tokens_limit_reached",  # GitHub Models, with status 413
        "prompt_too_long",  # proxies of Anthropic's interface
        "input_too_long",  # gateways
    }
)
LIMITED_NAMES: Final = frozenset(
    {
        "ratelimiterror",  # OpenAI, Anthropic, LiteLLM
        "modelratelimiterror",  # langchain-core
        "throttlingexception",  # Bedrock
        "resourceexhausted",  # google.api_core
    }
)
LIMITED_CODES: Final = frozenset(
    {
        "rate_limit_error",  # Anthropic
        "rate_limit_exceeded",  # OpenAI, Groq
        "resource_exhausted",  # Gemini
        "throttlingexception",  # Bedrock
        "throttling",  # DashScope
        "too_many_requests",  # Azure, gateways
        "ramp_limit_exceeded",  # Anthropic
    }
)
QUOTA_CODES: Final = frozenset(
    {
        "insufficient_quota",  # OpenAI
        "billing_hard_limit_reached",  # OpenAI
        "billing_not_active",  # OpenAI
        "billing_error",  # Anthropic
        "contract_spend_limit_reached",  # Anthropic
        "enforced_spend_limit_reached",  # Anthropic
    }
)
OVERLOADED_CODES: Final = frozenset(
    {
        "overloaded_error",  # Anthropic, also in streams that began with 200
        "server_is_overloaded",  # OpenAI Responses, in band
        "modelnotreadyexception",  # Bedrock
        "serviceunavailableexception",  # Bedrock
    }
)
TOO_LARGE_CODES: Final = frozenset(
    {
        "request_too_large",  # Anthropic, with status 413
        "request_body_too_large_after_decoding",  # Anthropic
    }
)
TOO_LARGE_NAMES: Final = frozenset(
    {
        "contenttoolargeerror",  # anthropic 2.14
        "requesttoolargeerror",  # anthropic 1.x
    }
)

# Words that name the model's context and nothing else.

_WINDOW: Final = r"context[ _-]?(?:length|window|size|limit)"
OVERFLOW: Final = _rows(
    (r"prompt (?:is )?too long", "Anthropic; Bedrock; Fireworks; z.ai; Ollama"),
    (r"input is too long for (?:the )?(?:requested|this) model", "Bedrock"),
    (r"exceed.{0,40}\b" + _WINDOW, "Anthropic; OpenAI Responses; SGLang; LiteLLM; llama.cpp"),
    (_WINDOW + r".{0,30}\b(?:exceed|overflow|too small|not enough)", "MiniMax; gateways"),
    (_WINDOW + r" of only [\d,]+", "LM Studio; code-only hosts"),
    (r"maximum " + _WINDOW + r"(?: is|:| of)? [\d,(]", "OpenAI; vLLM; OpenRouter; DeepSeek"),
    (r"configured " + _WINDOW + r" is", "hosts of DeepSeek models"),
    (r"too large for model with [\d,]+ maximum", "Mistral"),
    (
        r"(?:longer|greater|larger|more) than (?:the )?(?:model.{0,2}s )?" + _WINDOW,
        "SGLang; Together",
    ),
    (r"context the overflows", "LM Studio, its own spelling"),
    (r"longer than the maximum model length", "vLLM"),
    (
        r"exceed.{0,40}\bmax(?:imum)?_(?:model|seq|prompt)_?(?:len|length|tokens)",
        "vLLM; SiliconFlow",
    ),
    (r"exceeds (?:max_seq_len|(?:the )?maximum sequence length)", "self-hosted engines"),
    (r"input tokens? exceed.{0,20} (?:maximum|configured limit|model)", "OpenAI; Bedrock"),
    (r"input tokens exceeded", "Bedrock, Nova models"),
    (r"number of input tokens exceeds", "Bedrock, Nova models"),
    (r"number of input tokens [\d,]+ cannot exceed", "watsonx"),
    (r"too many input tokens", "Bedrock, embedding models"),
    (r"input token count.{0,40}(?:exceeds the maximum|but model only supports)", "Gemini; Vertex"),
    (r"maximum prompt length is [\d,]+", "xAI"),
    (r"prompt token count of [\d,]+ exceeds", "GitHub Copilot"),
    (r"exceeded model token limit", "Kimi"),
    (r"tokens in (?:the )?(?:prompt|request) (?:cannot exceed|more than max)", "Cohere; MiniMax"),
    (r"(?:input|prompt) length.{0,30} exceeds? (?:the )?maximum", "Poolside; DeepInfra"),
    (r"supports only [\d,.]+[km]? context", "Kimi, with status 401"),
    (r"exceed max message tokens", "Ark"),
    (r"exceeds? n_ctx", "llama.cpp"),
    (r"contains [\d,]+ tokens,? which exceeds the limit", "Gemini"),
    (r"conversation length exceeded", "Kimi"),
    (r"(?:input|prompt) is longer than the maximum", "self-hosted engines"),
    (r"context window (?:is )?full|filled the context window", "Ollama; gateways"),
    (r"max_tokens: [\d,]+ > context_window", "gateways of Anthropic"),
    (r"range of input length should be", "DashScope"),
    (r"`inputs` (?:tokens \+|must have less than)", "Text Generation Inference; Together"),
    (r"request body too large for .{0,60} max size: [\d,]+ tokens", "GitHub Models"),
    (r"(?:request|prompt|conversation) is too (?:long|large) for .{0,30}context", "gateways"),
    (r"contextwindowexceedederror|context_length_exceeded", "LiteLLM, OpenAI, in a wrapped text"),
    (
        r"prompt 超长|(?:输入|上下文|token).{0,6}(?:超|过长)|超过最大长度|超出上下文",
        "Zhipu; in Chinese",
    ),
)
# Words that also serve for rates, for output and for attachments: they count when nothing says so.
VAGUE: Final = _rows(
    (r"too many tokens", "Cohere; gateways; as often a rate"),
    (r"token limit exceeded|exceeds? (?:the )?token limit", "gateways"),
    (r"exceeds? the (?:limit|maximum) of [\d,]+ tokens", "gateways"),
    (
        r"\b(?:input|prompt|context|conversation|messages|tokens)(?: \w{1,20}){0,4} too long",
        "Perplexity; Kimi; Gemini; Replicate",
    ),
    (r"reduce the length of the (?:messages|input|prompt)", "Groq; Cerebras; vLLM; OpenAI"),
    (r"exceeds? the maximum number of tokens", "gateways of Gemini"),
)
# The input fits and the room asked for the output does not.
ROOM: Final = _rows(
    (r"input length and `?max_tokens`? exceed", "Anthropic; Bedrock"),
    (r"`inputs` tokens \+ `max_new_tokens` must be", "Text Generation Inference; Together"),
    (r"max_tokens: [\d,]+ > context_window", "gateways of Anthropic"),
    (r"max_completion_tokens.{0,4} is too large: .{0,60}context", "vLLM"),
)
# A parameter that asks for too much output, whatever the input is.
OUTPUT: Final = _rows(
    (r"max_(?:completion_|output_|new_|total_)?tokens|maxoutputtokens|maxtokens", "all"),
    (r"maximum tokens you requested", "Bedrock"),
    (r"(?:completion|output) tokens?\b", "OpenAI; Anthropic; Gemini"),
)
INPUT: Final = _rows(
    (r"\b(?:inputs?|input_tokens|prompts?|messages|conversation|request has)\b", "all"),
)

LIMITED: Final = _rows(
    (r"rate[ _-]?limit", "all"),
    (r"\btpm\b|\brpm\b|\btpd\b", "OpenAI; Groq"),
    (r"per[ _-](?:second|minute|min|hour|day)\b", "OpenAI; Anthropic; Gemini"),
    (r"throttl", "Bedrock; DashScope"),
    (r"too many requests", "all"),
    (r"please wait|slow down", "Bedrock"),
    (r"tokens processed", "Cerebras"),
    (r"(?:try|retry)(?: again)? (?:in|after|later)\b|retry[-_]?(?:after|delay)", "all"),
    (r"resource[_ ](?:has been )?exhausted", "Gemini"),
)
QUOTA: Final = _rows(
    (r"quota", "OpenAI; Gemini"),
    (r"billing", "OpenAI; Anthropic"),
    (r"insufficient[ _-](?:credits?|balance|funds)|out[ _]of[ _](?:credits|budget)", "all"),
    (r"credit balance|balance is exhausted|requires more credits", "Anthropic; OpenRouter"),
    (r"usage limits?\b|monthly limit|extra usage is required", "Anthropic; plans"),
)
OVERLOADED: Final = _rows(
    (r"overloaded", "Anthropic; OpenAI"),
    (r"experiencing high demand", "Gemini"),
)
TOO_LARGE: Final = _rows(
    (r"(?:request )?entity too large|payload too large|content too large", "nginx and its kind"),
    (r"request_too_large|request exceeds the maximum (?:size|allowed)", "Anthropic"),
    (r"request (?:payload|body)(?: size)? (?:is )?(?:exceeds|too large)", "Gemini; Express"),
    (r"request body: length limit exceeded", "axum"),
    (r"too many total text bytes", "Bedrock"),
    (r"invalid '(?:messages|input)[^']{0,40}(?:content|text|output)[^']{0,12}': string", "OpenAI"),
)
