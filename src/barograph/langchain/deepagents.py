"""Barograph in `deepagents`: one harness profile that makes room for it.

`create_deep_agent` puts its summarising and its caching behind every middleware of the caller, in
the main agent and in each subagent. A harness profile is its own way to take them out and to put
one middleware into all those stacks, so that subagents are governed too.
"""

from typing import Any, Final

from deepagents import HarnessProfile

from barograph.langchain.middleware import Barograph

_OUT: Final = frozenset({"SummarizationMiddleware", "AnthropicPromptCachingMiddleware"})


def harness_profile(barograph: Barograph, **more: Any) -> HarnessProfile:
    """The profile to register before `create_deep_agent` is called.

    ```python
    register_harness_profile("anthropic", harness_profile(Barograph()))
    ```

    Give no `memory=` and no `skills=` to `create_deep_agent`: their middlewares change the system
    message behind Barograph, which refuses that. Put the text into `system_prompt`.

    Args:
        barograph: the middleware of the main agent and all of its subagents.
        more: other fields of the profile, such as `system_prompt_suffix`.
    """
    return HarnessProfile(excluded_middleware=_OUT, extra_middleware=(barograph,), **more)
