"""Errors as providers word them: what they are about, and the figures that they name.

Sources are the providers' error pages and the public issue trackers of clients that met them.
"""

from typing import NamedTuple

import msgspec

from barograph.providers.overflow import Refusal


class Seen(NamedTuple):
    where: str
    kind: str
    refusal: Refusal
    figures: tuple[int | None, int | None, int | None] = (None, None, None)


def anthropic(message, type_="invalid_request_error", status=400):
    body = {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_01"}
    return Refusal(status=status, message=f"Error code: {status} - {body}", body=_json(body))


def openai(message, code=None, type_="invalid_request_error", status=400):
    """As version 3 of the client shows it: no JSON in the text, the code as an attribute."""
    body = {"error": {"message": message, "type": type_, "param": "messages", "code": code}}
    return Refusal(status=status, code=code, type=type_, message=message, body=_json(body))


def openai_2(message, code=None, type_="invalid_request_error", status=400):
    """As version 2 shows it: the body's repr in the text, and no body kept."""
    body = {"error": {"message": message, "type": type_, "param": None, "code": code}}
    return Refusal(status=status, message=f"Error code: {status} - {body}")


def gemini(message, reason="INVALID_ARGUMENT", status=400):
    body = {"error": {"code": status, "message": message, "status": reason}}
    return Refusal(status=status, message=f"{status} {reason}. {body}", body=_json(body))


def bedrock(message, error="ValidationException", operation="ConverseStream"):
    return Refusal(
        names=(error, "ClientError", "Exception"),
        code=error,
        message=f"An error occurred ({error}) when calling the {operation} operation: {message}",
    )


def plain(message, status=400, **more):
    return Refusal(status=status, message=message, **more)


def _json(body):
    return msgspec.json.encode(body).decode()


HTML_413 = (
    "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>"
    "413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx</center>\r\n</body></html>"
)
ROOM = "input length and `max_tokens` exceed context limit: {}, decrease input length or `max_tokens` and try again"  # noqa: E501
VLLM = (
    "This model's maximum context length is {} tokens. However, you requested {} output tokens and "
    "your prompt contains at least {} input tokens, for a total of at least {} tokens. Please "
    "reduce the length of the input prompt or the number of requested output tokens. "
    "(parameter=input_tokens, value={})"
)
TPM = (
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, "
    "Requested 43021. The input or output tokens must be reduced in order to run successfully."
)
QUOTA = "You exceeded your current quota, please check your plan and billing details."

TOO_LONG = (
    Seen(
        "Anthropic",
        "overflow",
        anthropic("prompt is too long: 203412 tokens > 200000 maximum"),
        (200000, 203412, None),
    ),
    Seen("Anthropic, bare", "overflow", anthropic("Prompt is too long")),
    Seen(
        "Anthropic, room that no max_tokens leaves",
        "overflow",
        anthropic(ROOM.format("200500 + 32000 > 200000")),
        (200000, 200500, 32000),
    ),
    Seen(
        "Anthropic, as langchain-anthropic names it",
        "overflow",
        Refusal(names=("AnthropicContextOverflowError", "ContextOverflowError"), status=400),
    ),
    Seen(
        "Anthropic's interface, a proxy's code",
        "overflow",
        plain("Bad request", code="prompt_too_long"),
    ),
    Seen(
        "OpenAI 3, chat",
        "overflow",
        openai(
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 131911 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        (128000, 131911, None),
    ),
    Seen(
        "OpenAI 2, chat",
        "overflow",
        openai_2(
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 131911 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        (128000, 131911, None),
    ),
    Seen(
        "OpenAI, input and functions over the window",
        "overflow",
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 10346 "
            "tokens (9000 in the messages, 346 in the functions, and 1000 in the completion). "
            "Please reduce the length of the messages, functions, or completion.",
            "context_length_exceeded",
        ),
        (8192, 9346, 1000),
    ),
    Seen(
        "OpenAI Responses",
        "overflow",
        openai(
            "Your input exceeds the context window of this model. Please adjust your input and try "
            "again.",
            "context_length_exceeded",
        ),
    ),
    Seen(
        "OpenAI Responses, without a code",
        "overflow",
        openai("Your input exceeds this model’s context window."),  # noqa: RUF001
    ),
    Seen(
        "OpenAI, limit of a project",
        "overflow",
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
            "300145 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        (272000, 300145, None),
    ),
    Seen(
        "OpenAI Responses, inside a stream",
        "overflow",
        plain(
            "",
            status=200,
            body='event: error\ndata: {"type":"error","code":"context_length_exceeded",'
            '"message":"Your input exceeds the context window of this model."}\n\n',
        ),
    ),
    Seen(
        "the code alone",
        "overflow",
        plain("Bad request", body='{"error":{"code":"context_length_exceeded"}}'),
    ),
    Seen(
        "the code alone, where the status says rate",
        "overflow",
        plain("Too big", status=429, code="context_length_exceeded"),
    ),
    Seen(
        "vLLM behind a host, counted up to the limit",
        "overflow",
        openai(
            "You passed 99073 input tokens and requested 32000 output tokens. However, the model's "
            "context length is only 131072 tokens, resulting in a maximum input length of 99072 "
            "tokens. Please reduce the length of the input prompt. (parameter=input_tokens, "
            "value=99073)",
            "context_length_exceeded",
        ),
        (131072, 99073, 32000),
    ),
    Seen(
        "vLLM, no output asked for",
        "overflow",
        plain(VLLM.format(262144, 0, 262145, 262145, 262145)),
        (262144, 262145, None),
    ),
    Seen(
        "vLLM, counted up to the limit",
        "overflow",
        plain(VLLM.format(202752, 65536, 137217, 202753, 137217)),
        (202752, 137217, 65536),
    ),
    Seen(
        "Bedrock, models behind vLLM",
        "overflow",
        bedrock(
            "Mantle streaming error for requestId 1: "
            + VLLM.format(202752, 65536, 137217, 202753, 137217)
        ),
        (202752, 137217, 65536),
    ),
    Seen(
        "vLLM, older",
        "overflow",
        plain(
            "This model's maximum context length is 4096 tokens. However, you requested 5103 tokens"
            " in the messages, Please reduce the length of the messages.",
            type="BadRequestError",
        ),
        (4096, 5103, None),
    ),
    Seen(
        "vLLM, the engine's own",
        "overflow",
        plain(
            "The decoder prompt (length 40961) is longer than the maximum model length of 40960. "
            "Make sure that `max_model_len` is no smaller than the number of text tokens."
        ),
        (40960, 40961, None),
    ),
    Seen(
        "vLLM, as an internal error",
        "overflow",
        plain(
            "The decoder prompt (length 40961) is longer than the maximum model length of 40960.",
            status=500,
        ),
        (40960, 40961, None),
    ),
    Seen(
        "SGLang",
        "overflow",
        plain(
            "",
            body='{"object":"error","message":"The input (400013 tokens) is longer than the '
            'model\'s context length (262144 tokens).","type":"BadRequestError","param":null,'
            '"code":400}',
        ),
        (262144, 400013, None),
    ),
    Seen(
        "LiteLLM, in mid-stream",
        "overflow",
        plain(
            "litellm.ServiceUnavailableError: litellm.MidStreamFallbackError: litellm."
            "APIConnectionError: APIConnectionError: OpenAIException - Requested token count "
            "exceeds the model's maximum context length of 131072 tokens.",
            status=503,
        ),
        (131072, None, None),
    ),
    Seen(
        "LiteLLM, by class",
        "overflow",
        Refusal(names=("ContextWindowExceededError", "BadRequestError"), status=400, message="x"),
    ),
    Seen(
        "LiteLLM, class in the text",
        "overflow",
        plain(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - "
            'b\'{"type":"error","error":{"type":"invalid_request_error","message":'
            '"prompt is too long: 205668 tokens > 200000 maximum"}}\'\\nReceived Model Group=x'
            "\\nAvailable Model Group Fallbacks=None"
        ),
        (200000, 205668, None),
    ),
    Seen(
        "LiteLLM, the fallback was limited too",
        "overflow",
        plain(
            "litellm.BadRequestError: prompt is too long: 205668 tokens > 200000 maximum. Error "
            "doing the fallback: litellm.RateLimitError: try again in 20s"
        ),
        (200000, 205668, None),
    ),
    Seen(
        "llama.cpp",
        "overflow",
        openai(
            "request (144055 tokens) exceeds the available context size (131072 tokens), try "
            "increasing it",
            type_="exceed_context_size_error",
        ),
        (131072, 144055, None),
    ),
    Seen(
        "llama.cpp, figures as fields",
        "overflow",
        plain(
            "",
            body='{"error":{"code":400,"message":"the request exceeds the available context size, '
            'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":144055,'
            '"n_ctx":131072}}',
        ),
        (131072, 144055, None),
    ),
    Seen(
        "llama-cpp-python",
        "overflow",
        plain("Requested tokens (5021) exceed context window of 4096", status=500),
        (4096, 5021, None),
    ),
    Seen(
        "LM Studio",
        "overflow",
        plain(
            "The number of tokens to keep from the initial prompt is greater than the context "
            "length (n_keep: 5021>= n_ctx: 4096). Try to load the model with a larger context "
            "length, or provide a shorter input."
        ),
        (4096, 5021, None),
    ),
    Seen(
        "LM Studio, its other",
        "overflow",
        plain(
            "Trying to keep the first 5021 tokens when context the overflows. However, the model "
            "is loaded with context length of only 4096 tokens, which is not enough."
        ),
        (4096, 5021, None),
    ),
    Seen(
        "Ollama",
        "overflow",
        plain("prompt too long; exceeded max context length by 1200 tokens"),
    ),
    Seen(
        "Ollama, embeddings",
        "overflow",
        plain("the input length exceeds the context length", status=500),
    ),
    Seen(
        "OpenRouter",
        "overflow",
        plain(
            "",
            body='{"error":{"message":"This endpoint\'s maximum context length is 131072 tokens. '
            "However, you requested about 140523 tokens (134427 of text input, 2000 of tool input, "
            '4096 in the output). Please reduce the length of either one.","code":400}}',
        ),
        (131072, 136427, 4096),
    ),
    Seen(
        "OpenRouter, wrapped",
        "overflow",
        plain(
            "Provider returned error",
            body='{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":'
            '"{\\"error\\":{\\"message\\":\\"Input length 131393 exceeds the maximum allowed input '
            'length of 131040 tokens.\\"}}","provider_name":"Poolside"}}}',
        ),
        (131040, 131393, None),
    ),
    Seen(
        "OpenRouter, another host",
        "overflow",
        plain(
            "Provider returned error",
            body='{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":'
            '"Requested input length 39818 exceeds maximum input length 32767","provider_name":'
            '"DeepInfra"}}}',
        ),
        (32767, 39818, None),
    ),
    Seen(
        "Gemini",
        "overflow",
        gemini(
            "The input token count (1058724) exceeds the maximum number of tokens allowed "
            "(1048576)."
        ),
        (1048576, 1058724, None),
    ),
    Seen(
        "Gemini, without the count",
        "overflow",
        gemini("The input token count exceeds the maximum number of tokens allowed 1048576."),
        (1048576, None, None),
    ),
    Seen(
        "Vertex",
        "overflow",
        gemini(
            "Unable to submit request because the input token count is 1050021 but model only "
            "supports up to 1048575. Reduce the input token count and try again."
        ),
        (1048575, 1050021, None),
    ),
    Seen(
        "Gemini, as langchain-google-genai names it",
        "overflow",
        Refusal(
            names=("GoogleContextOverflowError", "ClientError", "ContextOverflowError"),
            status=400,
            message="400 INVALID_ARGUMENT. The input exceeds the model's token limit",
        ),
    ),
    Seen("Bedrock", "overflow", bedrock("Input is too long for requested model.")),
    Seen(
        "Bedrock, of its models",
        "overflow",
        bedrock(
            "The model returned the following errors: prompt is too long: 903884 tokens > 200000 "
            "maximum"
        ),
        (200000, 903884, None),
    ),
    Seen(
        "Bedrock, inside a stream",
        "overflow",
        Refusal(
            names=("EventStreamError", "ClientError"),
            status=200,
            message="An error occurred (validationException) when calling the InvokeModelWith"
            "ResponseStream operation: Input is too long for requested model.",
        ),
    ),
    Seen(
        "Bedrock, Nova",
        "overflow",
        bedrock(
            "The model returned the following errors: Input Tokens Exceeded: Number of input tokens"
            " exceeds maximum length. Please update the input to try again."
        ),
    ),
    Seen(
        "Bedrock, embeddings",
        "overflow",
        bedrock(
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token "
            "count: 9021"
        ),
        (8192, 9021, None),
    ),
    Seen(
        "DeepSeek",
        "overflow",
        openai(
            "This model's maximum context length is 65536 tokens. However, you requested 78042 "
            "tokens (73946 in the messages, 4096 in the completion). Please reduce the length of "
            "the messages or completion.",
            "invalid_request_error",
        ),
        (65536, 73946, 4096),
    ),
    Seen(
        "a host of DeepSeek models",
        "overflow",
        plain("Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens"),
        (256000, 5958968, None),
    ),
    Seen(
        "xAI",
        "overflow",
        plain(
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            code="Client specified an invalid argument",
        ),
        (131072, 537812, None),
    ),
    Seen(
        "Groq",
        "overflow",
        openai(
            "Please reduce the length of the messages or completion.", "context_length_exceeded"
        ),
    ),
    Seen(
        "Groq, without a code",
        "overflow",
        plain("Please reduce the length of the messages or completion."),
    ),
    Seen(
        "Cerebras",
        "overflow",
        openai(
            "Please reduce the length of the messages or completion. Current length is 8502 while "
            "limit is 8192",
            "context_length_exceeded",
        ),
        (8192, 8502, None),
    ),
    Seen(
        "Mistral",
        "overflow",
        plain(
            "",
            body='{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too'
            ' large for model with 32768 maximum context length","type":"invalid_request_error",'
            '"code":"3051"}',
        ),
        (32768, 65673, None),
    ),
    Seen(
        "GitHub Copilot",
        "overflow",
        openai(
            "prompt token count of 125516 exceeds the limit of 64000",
            "model_max_prompt_tokens_exceeded",
        ),
        (64000, 125516, None),
    ),
    Seen(
        "GitHub Models",
        "overflow",
        openai(
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
            "tokens_limit_reached",
            status=413,
        ),
        (8000, None, None),
    ),
    Seen(
        "Kimi",
        "overflow",
        openai(
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 300021)"
        ),
        (262144, 300021, None),
    ),
    Seen(
        "Kimi, as if it were about the key",
        "overflow",
        plain("The model supports only 256K context", status=401),
    ),
    Seen("MiniMax", "overflow", plain("invalid params, context window exceeds limit (2013)")),
    Seen(
        "MiniMax, its other",
        "overflow",
        plain("invalid params, tokens in request more than max tokens allowed"),
    ),
    Seen("z.ai", "overflow", plain("", body='{"error":{"code":"1261","message":"Prompt 超长"}}')),
    Seen(
        "DashScope",
        "overflow",
        plain(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]"
        ),
        (98304, None, None),
    ),
    Seen(
        "SiliconFlow",
        "overflow",
        plain(
            "",
            body='{"code":20015,"message":"number of input tokens (204703) has exceeded '
            'max_prompt_tokens (202752) limit.","data":null}',
        ),
        (202752, 204703, None),
    ),
    Seen("Ark", "overflow", plain("Total tokens of image and text exceed max message tokens.")),
    Seen(
        "Fireworks",
        "overflow",
        plain("The prompt is too long: 140021, model maximum context length: 131071"),
        (131071, 140021, None),
    ),
    Seen(
        "Cohere",
        "overflow",
        plain(
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received "
            "5012. Try using a shorter prompt."
        ),
        (4081, 5012, None),
    ),
    Seen(
        "watsonx",
        "overflow",
        plain(
            "the number of input tokens 8193 cannot exceed the total tokens limit 8192 for this "
            "model"
        ),
        (8192, 8193, None),
    ),
    Seen(
        "Text Generation Inference",
        "overflow",
        plain(
            "Input validation error: `inputs` must have less than 32768 tokens. Given: 40021",
            status=422,
        ),
        (32768, 40021, None),
    ),
    Seen(
        "a parenthesised host",
        "overflow",
        plain("Input length (265330) exceeds model's maximum context length (262144)."),
        (262144, 265330, None),
    ),
    Seen(
        "Cloudflare",
        "overflow",
        plain(
            "AiError: The estimated number of input and maximum output tokens (30021) exceeded this"
            " model context window limit (24000)."
        ),
        (24000, None, None),
    ),
    Seen(
        "a self-hosted engine",
        "overflow",
        plain(
            "Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)"
        ),
        (2048, 5152, None),
    ),
    Seen("Perplexity", "overflow", plain("The total length of all messages is too long.")),
    Seen("Kimi, its other", "overflow", plain("Input token length too long")),
    Seen(
        "Kimi, a session",
        "overflow",
        plain("Conversation length exceeded. Please start a new session"),
    ),
    Seen(
        "Gemini, its other",
        "overflow",
        gemini("Request contains 35000 tokens, which exceeds the limit of 32768"),
        (32768, 35000, None),
    ),
    Seen(
        "Gemini, its third", "overflow", gemini("Your input context is too long", "INTERNAL", 500)
    ),
    Seen("Replicate", "overflow", plain("Input is too long.")),
    Seen(
        "LiteLLM's router",
        "overflow",
        plain(
            "litellm.BadRequestError: Context Window exceeded for given call. No models have "
            "context window large enough for this call."
        ),
    ),
    Seen("Ollama, an empty answer", "overflow", plain("prompt filled the context window", None)),
    Seen(
        "llama-cpp-python, by its parameter",
        "overflow",
        plain("Requested tokens (5021) exceed n_ctx 4096"),
        (4096, 5021, None),
    ),
    Seen(
        "an engine's maximum",
        "overflow",
        plain("Input is longer than the maximum number of tokens: 5021 > 4096"),
    ),
    Seen("in Chinese, input", "overflow", plain("输入长度超过限制")),
    Seen("in Chinese, context", "overflow", plain("超出上下文限制")),
    Seen("in Chinese, tokens", "overflow", plain("token数量超过限制")),
    Seen(
        "DeepSeek, no output asked for",
        "overflow",
        openai(
            "This model's maximum context length is 65536 tokens. However, you requested 68161 "
            "tokens (68161 in the messages, 0 in the completion). Please reduce the length of the "
            "messages or completion.",
            "invalid_request_error",
        ),
        (65536, 68161, None),
    ),
    Seen(
        "DeepSeek, room",
        "max_tokens_room",
        openai(
            "This model's maximum context length is 131072 tokens. However, you requested 131134 "
            "tokens (122942 in the messages, 8192 in the completion). Please reduce the length of "
            "the messages or completion.",
            "invalid_request_error",
        ),
        (131072, 122942, 8192),
    ),
    Seen(
        "a gateway of Anthropic, room",
        "max_tokens_room",
        plain(
            "max_tokens: 128000 > context_window: 200000 - input_tokens: 180000 = "
            "available_tokens: 20000"
        ),
        (200000, 180000, 128000),
    ),
    Seen(
        "a gateway, of the request",
        "overflow",
        plain("The request is too large for the context window."),
    ),
    Seen("a gateway, vaguely", "overflow", plain("Too many tokens")),
    Seen("a gateway, in tokens", "overflow", plain("exceeds the limit of 128,000 tokens")),
    Seen(
        "a gateway, in its own words",
        "overflow",
        plain("The conversation is too long for the model's context."),
    ),
    Seen("a gateway, as vaguely", "overflow", plain("Token limit exceeded")),
    Seen(
        "Anthropic, room",
        "max_tokens_room",
        anthropic(ROOM.format("190112 + 32000 > 200000")),
        (200000, 190112, 32000),
    ),
    Seen(
        "Anthropic, room, in a gateway's text",
        "max_tokens_room",
        plain("LLM request rejected: input length and max_tokens exceed context limit"),
    ),
    Seen(
        "OpenAI, room",
        "max_tokens_room",
        openai(
            "This model's maximum context length is 8191 tokens, however you requested 10346 tokens"
            " (6346 in your prompt; 4000 for the completion). Please reduce your prompt; or "
            "completion length.",
            "context_length_exceeded",
        ),
        (8191, 6346, 4000),
    ),
    Seen(
        "OpenRouter, room",
        "max_tokens_room",
        plain(
            "This endpoint's maximum context length is 262144 tokens. However, you requested about "
            "284283 tokens (8963 of text input, 13176 of tool input, 262144 in the output). Please "
            "reduce the length of either one, or use the context-compression plugin to compress "
            "your prompt automatically."
        ),
        (262144, 22139, 262144),
    ),
    Seen(
        "vLLM, room",
        "max_tokens_room",
        plain(
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum "
            "context length is 32768 tokens and your request has 5021 input tokens (32000 > 32768 -"
            " 5021)."
        ),
        (32768, 5021, 32000),
    ),
    Seen(
        "SGLang, room",
        "max_tokens_room",
        plain(
            "Requested token count exceeds the model's maximum context length of 131072 tokens. "
            "You requested a total of 140000 tokens: 108000 tokens from the input messages and "
            "32000 tokens for the completion. Please reduce the number of tokens in the input "
            "messages or the completion to fit within the limit."
        ),
        (131072, 108000, 32000),
    ),
    Seen(
        "Text Generation Inference, room",
        "max_tokens_room",
        plain(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: "
            "6204 `inputs` tokens and 2047 `max_new_tokens`",
            status=422,
        ),
        (8192, 6204, 2047),
    ),
)

NOT_TOO_LONG = (
    Seen(
        "Anthropic, bytes",
        "too_large",
        anthropic("Request exceeds the maximum size", "request_too_large", 413),
    ),
    Seen(
        "Anthropic, bytes, behind a gateway",
        "too_large",
        anthropic("Request exceeds the maximum allowed number of bytes.", "request_too_large"),
    ),
    Seen("nginx", "too_large", plain("Error code: 413", status=413, body=HTML_413)),
    Seen("nginx behind a gateway", "too_large", plain("", status=502, body=HTML_413)),
    Seen("a bare 413", "too_large", plain("413 status code (no body)", status=413)),
    Seen(
        "axum",
        "too_large",
        plain("Failed to buffer the request body: length limit exceeded", status=413),
    ),
    Seen(
        "Gemini, bytes",
        "too_large",
        gemini("Request payload size exceeds the limit: 20971520 bytes."),
    ),
    Seen("Bedrock, bytes", "too_large", bedrock("too many total text bytes")),
    Seen(
        "OpenAI, one long message",
        "too_large",
        openai(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
            "1048576, but got a string with length 1540820 instead.",
            "string_above_max_length",
        ),
    ),
    Seen(
        "Anthropic, rate",
        "rate_limited",
        anthropic(
            "This request would exceed the rate limit of 40000 input tokens per minute.",
            "rate_limit_error",
            429,
        ),
    ),
    Seen(
        "Anthropic, rate, text alone",
        "rate_limited",
        Refusal(message="This request would exceed the rate limit of 40000 tokens per minute."),
    ),
    Seen(
        "OpenAI, more than a minute's tokens",
        "rate_limited",
        openai(TPM, "rate_limit_exceeded", "tokens", 429),
    ),
    Seen("OpenAI 2, the same", "rate_limited", openai_2(TPM, "rate_limit_exceeded", "tokens", 429)),
    Seen(
        "Groq, more than a minute's tokens",
        "rate_limited",
        openai(
            "Request too large for model `gpt-oss-120b` in organization `org_x` service tier "
            "`on_demand` on tokens per minute (TPM): Limit 8000, Requested 10443, please reduce "
            "your message size and try again.",
            "rate_limit_exceeded",
            "tokens",
            413,
        ),
    ),
    Seen(
        "a gateway's limit in tokens",
        "rate_limited",
        plain("This request exceeds the limit of 30000 tokens per minute", status=429),
    ),
    Seen(
        "a gateway's limit with another status",
        "rate_limited",
        plain("Too many tokens per minute", status=400),
    ),
    Seen(
        "Bedrock, rate",
        "rate_limited",
        bedrock("Too many tokens, please wait before trying again.", "ThrottlingException"),
    ),
    Seen(
        "Bedrock, rate, text alone",
        "rate_limited",
        Refusal(message="Throttling error: Too many tokens, please wait before trying again."),
    ),
    Seen(
        "Bedrock, a day's tokens",
        "rate_limited",
        plain("Too many tokens per day, please wait before trying again.", status=429),
    ),
    Seen("Cerebras, rate", "rate_limited", plain("Too many tokens processed", status=None)),
    Seen(
        "Gemini, a minute's quota",
        "rate_limited",
        gemini(
            "You exceeded your current quota, please check your plan and billing details. Quota "
            "exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000. "
            "Please retry in 32.5s.",
            "RESOURCE_EXHAUSTED",
            429,
        ),
    ),
    Seen(
        "Gemini, a rate that langchain-google-genai calls an overflow",
        "rate_limited",
        Refusal(
            names=("GoogleContextOverflowError", "ClientError", "ContextOverflowError"),
            status=429,
            message="429 RESOURCE_EXHAUSTED. Input token limit per minute reached.",
        ),
    ),
    Seen("a bare 429", "rate_limited", plain("Too Many Requests", status=429)),
    Seen(
        "LiteLLM, rate",
        "rate_limited",
        Refusal(names=("RateLimitError",), message="litellm.RateLimitError: too many tokens"),
    ),
    Seen("OpenAI, quota", "quota", openai(QUOTA, "insufficient_quota", "insufficient_quota", 429)),
    Seen("OpenAI 2, quota", "quota", openai_2(QUOTA, "insufficient_quota", status=429)),
    Seen(
        "Anthropic, spend",
        "quota",
        anthropic("You have reached your specified API usage limits.", "billing_error", 429),
    ),
    Seen(
        "Anthropic, credit",
        "quota",
        anthropic(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
            "Billing to upgrade or purchase credits."
        ),
    ),
    Seen(
        "Anthropic, long context is not in the plan",
        "quota",
        anthropic("Extra usage is required for long context requests.", "rate_limit_error", 429),
    ),
    Seen("a gateway, balance", "quota", plain("insufficient-balance", status=429)),
    Seen("a gateway, credits", "quota", plain("You are out of credits.", status=429)),
    Seen("a gateway, its balance", "quota", plain("Your balance is exhausted.", status=403)),
    Seen("a plan", "quota", plain("Monthly limit reached", status=429)),
    Seen("a queue", "rate_limited", plain("The queue is too long, try again later.")),
    Seen("DeepSeek, balance", "quota", openai("Insufficient Balance", status=402)),
    Seen(
        "OpenRouter, credits",
        "quota",
        plain(
            "This request requires more credits, or fewer max_tokens. You requested up to 32000 "
            "tokens, but can only afford 2501.",
            status=402,
        ),
    ),
    Seen(
        "OpenRouter, prompt tokens of a free plan",
        "quota",
        plain(
            "Prompt tokens limit exceeded: 12041 > 8000. To increase, visit "
            "https://openrouter.ai/settings/credits and upgrade to a paid account",
            status=402,
        ),
    ),
    Seen("Anthropic, overloaded", "overloaded", anthropic("Overloaded", "overloaded_error", 529)),
    Seen(
        "Anthropic, overloaded inside a stream",
        "overloaded",
        anthropic("Overloaded", "overloaded_error", 200),
    ),
    Seen(
        "OpenAI, overloaded",
        "overloaded",
        openai(
            "The engine is currently overloaded, please try again later",
            type_="server_error",
            status=503,
        ),
    ),
    Seen(
        "Gemini, overloaded",
        "overloaded",
        gemini(
            "This model is currently experiencing high demand. Please try again later.",
            "UNAVAILABLE",
            503,
        ),
    ),
    Seen(
        "Bedrock, unavailable",
        "overloaded",
        bedrock("Bedrock is unable to process your request.", "ServiceUnavailableException"),
    ),
    Seen(
        "Anthropic, markers",
        "markers_over_limit",
        anthropic("A maximum of 4 blocks with cache_control may be provided. Found 5."),
    ),
    Seen(
        "a gateway without markers",
        "markers_unsupported",
        plain("messages.0.content.0.cache_control: Extra inputs are not permitted", status=422),
    ),
    Seen(
        "Anthropic, more output than the model gives",
        "other",
        anthropic(
            "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for "
            "claude-sonnet-4-5"
        ),
    ),
    Seen(
        "Anthropic, thinking budget",
        "other",
        anthropic("`max_tokens` must be greater than `thinking.budget_tokens`."),
    ),
    Seen("max_tokens", "other", plain("max_tokens must be <= 8192")),
    Seen(
        "DeepSeek, max_tokens",
        "other",
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    ),
    Seen(
        "OpenAI, max_tokens",
        "other",
        openai(
            "max_tokens is too large: 200000. This model supports at most 16384 completion tokens, "
            "whereas you provided 200000.",
            "invalid_value",
        ),
    ),
    Seen(
        "vLLM, max_tokens over the window",
        "other",
        plain(
            "max_tokens=200000 cannot be greater than max_model_len=131072. Please request fewer "
            "output tokens."
        ),
    ),
    Seen(
        "a gateway, max_tokens over the context length",
        "other",
        plain("max_tokens (200000) must not be greater than the context length (131072)."),
    ),
    Seen(
        "Gemini, maxOutputTokens",
        "other",
        gemini(
            "Unable to submit request because it has a maxOutputTokens value of 339835 but the "
            "supported range is from 1 (inclusive) to 65537 (exclusive)."
        ),
    ),
    Seen(
        "Gemini, output that langchain-google-genai calls an overflow",
        "other",
        Refusal(
            names=("GoogleContextOverflowError", "ClientError", "ContextOverflowError"),
            status=400,
            message="400 INVALID_ARGUMENT. maxOutputTokens is above the token limit 65536",
        ),
    ),
    Seen(
        "Bedrock, max_tokens",
        "other",
        bedrock(
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a "
            "maximum tokens value that is lower than 4096."
        ),
    ),
    Seen(
        "Ark, max_tokens",
        "other",
        plain(
            "The parameter `max_tokens` specified in the request are not valid: integer above "
            "maximum value, expected a value <= 32768, but got 65536 instead."
        ),
    ),
    Seen(
        "Zhipu, max_tokens",
        "other",
        plain("Exceeding the limiting length: [max_tokens should be less or equal to 131072]"),
    ),
    Seen(
        "Anthropic, an image",
        "other",
        anthropic(
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > "
            "5242880 bytes"
        ),
    ),
    Seen("images by number", "other", plain("image count exceeds the limit of 20")),
    Seen(
        "Anthropic, a description",
        "other",
        anthropic("tools.0.custom.description: String should have at most 1024 characters"),
    ),
    Seen(
        "OpenAI, a name",
        "other",
        openai(
            "Invalid 'tools[0].function.name': string too long. Expected a string with maximum "
            "length 64, but got a string with length 70 instead.",
            "string_above_max_length",
        ),
    ),
    Seen("a token of another kind", "other", plain("Invalid token: it has expired", status=401)),
    Seen("tokens of another kind", "other", plain("Token limit exceeded", status=401)),
    Seen(
        "a gateway, max_tokens of a request",
        "other",
        plain("max_tokens in the request exceeds the limit of 8192 tokens"),
    ),
    Seen("a context that is busy", "other", plain("context window workers are saturated", 500)),
    Seen("a context that is fine", "other", plain("The context is large, but acceptable.")),
    Seen(
        "OpenAI, a description",
        "other",
        openai("Invalid 'tools[0].function.description': string too long."),
    ),
    Seen("a parameter of a context", "other", plain("context_length must be a positive integer")),
    Seen("DashScope, max_tokens", "other", plain("Range of max_tokens should be [1, 8192]")),
    Seen("a file", "other", plain("input exceeds maximum file size")),
    Seen("a bare 400", "other", plain("400 status code (no body)")),
    Seen("a context of another kind", "other", plain("context deadline exceeded", status=504)),
    Seen(
        "Anthropic, a pair",
        "other",
        anthropic("messages.2: `tool_use` ids were found without `tool_result` blocks immediately"),
    ),
    Seen("a crash", "other", plain("500 `model runner crashed unexpectedly`", status=500)),
    Seen(
        "vLLM, a quoted request",
        "other",
        plain(
            "Error code: 422",
            status=422,
            body='{"detail":[{"type":"string_type","loc":["body","messages",0,"content"],"msg":'
            '"Input should be a valid string","input":"It said: prompt is too long: 9 > 8"}]}',
        ),
    ),
    Seen("nothing at all", "other", Refusal()),
)
