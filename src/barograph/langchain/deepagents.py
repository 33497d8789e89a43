"""Barograph in `deepagents`: what makes room for it, and memory as a source of the frame.

`create_deep_agent` puts its summarising, its caching and its memory behind every middleware of the
caller, in the main agent and in its subagents. A harness profile is its own way to take the first
two out of all those stacks, that of the general-purpose subagent too, and to put one middleware
into each. Memory is no part of a profile: it is there where `memory=` is given, and writes what its
files say into the system message. So its files are given to a source of the frame instead, which
reads them once a turn and says them when they changed, behind what the cache holds.
"""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

from deepagents import HarnessProfile
from deepagents.backends import StateBackend
from deepagents.backends.protocol import BackendProtocol

from barograph.core.errors import UsageError
from barograph.core.trust import Trust
from barograph.frame import Source
from barograph.langchain.middleware import Barograph

_OUT: Final = frozenset({"SummarizationMiddleware", "AnthropicPromptCachingMiddleware"})
_WITH_AWS: Final = "BedrockPromptCachingMiddleware"
"""In each stack where `langchain-aws` is installed; what is not there must not be excluded."""

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


def deep_agent_profile(barograph: Barograph, **fields: Any) -> HarnessProfile:
    """The harness profile with which `create_deep_agent` makes an agent that Barograph governs.

    It takes out what would own the surface too, and puts Barograph into the main agent and every
    subagent.

    ```python
    memory = deep_agent_memory(["/AGENTS.md"], backend)
    profile = deep_agent_profile(Barograph(frame=[memory]))
    register_harness_profile("anthropic", profile)
    agent = create_deep_agent(model, backend=backend)
    ```

    Args:
        barograph: the middleware of the main agent and all of its subagents.
        fields: others of the profile, such as `system_prompt_suffix`.
    """
    out = _OUT | ({_WITH_AWS} if find_spec("langchain_aws") is not None else frozenset())
    return HarnessProfile(excluded_middleware=out, extra_middleware=(barograph,), **fields)


def deep_agent_memory(
    files: Sequence[str],
    backend: BackendProtocol | None = None,
    *,
    budget_chars: int = 16_000,
    trust: Trust = "operator",
) -> Source:
    """A source of the frame that tells the main agent what its files of memory say.

    They are read once a turn; one that is not there says nothing, and HTML comments are left out.

    Args:
        files: what would be given as `memory=` to `create_deep_agent`, which gets none.
        backend: where they are; the same that `create_deep_agent` is given. Without one they are in
            the state of the graph, as there.
        budget_chars: the most that they may say together; what is beyond is cut, and that is said.
        trust: whose word they are. Files that an agent writes to itself are not the operator's.

    Raises:
        UsageError: the budget is below 1.
    """
    where, paths = backend or StateBackend(), list(files)
    return Source(
        name="memory files",
        compose=lambda _: _read(where, paths),
        budget_chars=budget_chars,
        trust=trust,
    )


def _read(backend: BackendProtocol, paths: list[str]) -> str:
    """What the files say: the path of each, and its text without HTML comments.

    Raises:
        UsageError: a file is there and cannot be read.
    """
    texts = []
    for path, file in zip(paths, backend.download_files(paths), strict=True):
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
