"""Barograph in `deepagents`: the parts that make room for it.

`create_deep_agent` puts its summarising, its caching and its memory behind every middleware of the
caller, in the main agent and in its subagents. A harness profile is its own way to take the first
two out of all those stacks, that of the general-purpose subagent too, and to put one middleware
into each. Memory is no part of a profile: it is there where `memory=` is given, so its files are
given here instead, and what they say comes ahead of Barograph.
"""

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

from deepagents import HarnessProfile
from deepagents.backends import StateBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.middleware.memory import MemoryMiddleware
from langchain.agents.middleware import AgentMiddleware
from msgspec import Struct

from barograph.core.errors import UsageError
from barograph.langchain.middleware import Barograph

_OUT: Final = frozenset({"SummarizationMiddleware", "AnthropicPromptCachingMiddleware"})
_WITH_AWS: Final = "BedrockPromptCachingMiddleware"
"""In each stack where `langchain-aws` is installed; what is not there must not be excluded."""

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


class DeepAgentParts(Struct, frozen=True, kw_only=True):
    """What `create_deep_agent` needs so that Barograph governs it.

    Attributes:
        profile: to be given to `register_harness_profile`. It takes out what would own the surface
            too, and puts Barograph into the main agent and every subagent.
        middleware: to be given to `create_deep_agent`: what writes memory into the system message,
            ahead of Barograph. Empty where there is none.
        memory: reads what the files of memory say now; None where there is none.
    """

    profile: HarnessProfile
    middleware: tuple[AgentMiddleware[Any, Any, Any], ...]
    memory: Callable[[], str] | None


def deep_agent_parts(
    barograph: Barograph,
    *,
    memory: Sequence[str] = (),
    backend: BackendProtocol | None = None,
    **profile: Any,
) -> DeepAgentParts:
    """The parts with which `create_deep_agent` makes an agent that Barograph governs.

    ```python
    parts = deep_agent_parts(Barograph(), memory=["/AGENTS.md"], backend=backend)
    register_harness_profile("anthropic", parts.profile)
    agent = create_deep_agent(model, middleware=parts.middleware, backend=backend)
    ```

    Args:
        barograph: the middleware of the main agent and all of its subagents.
        memory: files that would be given as `memory=` to `create_deep_agent`, which gets none.
        backend: where they are; the same that `create_deep_agent` is given.
        profile: other fields of the harness profile, such as `system_prompt_suffix`.
    """
    backend = backend or StateBackend()
    out = _OUT | ({_WITH_AWS} if find_spec("langchain_aws") is not None else frozenset())
    sources = list(memory)
    writes = MemoryMiddleware(backend=backend, sources=sources) if sources else None
    return DeepAgentParts(
        profile=HarnessProfile(excluded_middleware=out, extra_middleware=(barograph,), **profile),
        middleware=(writes,) if writes is not None else (),
        memory=(lambda: _read(backend, sources)) if sources else None,
    )


def _read(backend: BackendProtocol, sources: list[str]) -> str:
    """What the files say: the path of each, and its text without HTML comments.

    Raises:
        UsageError: a file is there and cannot be read.
    """
    texts = []
    for path, file in zip(sources, backend.download_files(sources), strict=True):
        if file.error not in (None, "file_not_found"):
            raise UsageError(
                f"The memory file {path} cannot be read: {file.error}.",
                next_step="Name a text file that the backend of the agent can read.",
                path=path,
            )
        text = _COMMENT.sub("", (file.content or b"").decode("utf-8", "replace")).strip()
        if text:
            texts.append(f"{path}\n\n{text}")
    return "\n\n".join(texts)
