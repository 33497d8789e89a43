"""Every knob: frozen, validated, documented with unit and range."""

from collections.abc import Mapping
from math import inf
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.errors import PolicyError
from barograph.core.events import Ttl
from barograph.core.rounds import RoundRules

Preset = Literal["balanced", "fixed", "bound-once", "off"]
Profile = Literal["interactive", "desktop", "fleet", "subagent"]
Lifetime = Literal["auto", "5m", "1h"]

_LIFETIMES: Final[Mapping[Profile, Lifetime]] = {
    "interactive": "auto",
    "desktop": "1h",
    "fleet": "1h",
    # 78 calls of subagents in recorded sessions, and never five minutes between two of them
    "subagent": "5m",
}


MODEL_KNOBS: Final = (
    "prune_after_rounds",
    "prune_at_ratio",
    "relief_ratio",
    "rent_ratio",
    "compact_at_ratio",
    "compact_to_ratio",
    "summary_ratio",
    "window_tokens",
    "write_ratio",
    "read_ratio",
    "start_tokens_per_char",
)
"""Knobs that may differ by model: all that say when its window is relieved, and by how much."""

_WHOLE: Final = ("prune_after_rounds", "window_tokens")


class Policy(Struct, frozen=True, kw_only=True):
    """How a session is governed.

    Attributes:
        name: `balanced` prunes when carrying old results has cost as much as rewriting what follows
            them; `fixed` prunes at a share of the window, whatever the prices; `bound-once` caps
            results when they come, as the first two do, and prunes none; `off` shows all as it is,
            and neither nudges nor stops a stall. Log, byte stability and breakpoints are the same
            in all.
        profile: what kind of agent this is; it picks the lifetime of cache entries.
        ttl: lifetime of cache entries: `5m`, `1h`, or `auto`, which begins with 5 minutes and buys
            an hour where the pauses of the session make it pay. None takes the profile's: `auto`
            for `interactive`, `1h` for `desktop` and `fleet`, which pause for people and long
            tools, `5m` for a `subagent`, which waits for nobody.
        pause_ratio: share of calls, 0 to 1, that a pause of 5 minutes to an hour is expected to
            follow before the session has shown any; for `auto`. `barograph ttl` counts them.
        markers: `auto` places cache markers and, where a provider refuses them, sends the call once
            more with fewer or none and does without for an hour; `force` never does without, and
            the refusal reaches the caller; `off` places none.
        diagnostics: `on` asks the provider with each call to compare it with the one before and
            logs what it finds, a second witness beside our own; `auto` does so where the provider's
            own address is called, since others may refuse the field; `off` does not.
        fanout_wait_seconds: how long a call waits for another agent of its session that is writing
            the same tools and system to a cold cache, from 0 to 600. It goes on as soon as the
            response to that one begins; 0 is never to wait.
        keep_warm_tokens: what a session may spend to keep its cache entries alive through pauses,
            in plain input tokens; 0 is never to. The last request is sent once more before they
            die, as long as that costs less than to write them again.
        keep_warm_seconds: how long after its last call an agent is kept warm at most, above 0.
        identity: text of the first system block, for providers that demand one of an account. It
            stands alone and carries no marker; None for none.
        tool_order: names of tools that come first, in this order; the rest follows by name. A tool
            that is new in mid-session stands behind those that were there.
        base_tools: names of tools that are offered from the first call on. All others are found
            with the tool `search_tools` and offered from then on, behind those; None offers all.
        on_store_error: `continue` goes on with one loud warning when the log cannot be written;
            `stop` raises before the request leaves.
        on_mismatch: what to do when the request that is about to leave is not the surface, because
            something behind us changed it: `warn` says so once and goes on, `stop` raises before it
            leaves. Either way the log has both.
        max_result_chars: the most characters of a tool result that a model is shown; of a longer
            one it sees both ends and how to read the whole. 0 is no limit.
        tool_result_chars: the same for tools of these names.
        mcp_max_result_chars: the same for tools of MCP servers; None is `max_result_chars`.
        server_result_chars: the same for all tools of the MCP servers of these names; a number for
            the very tool counts first.
        keep_images: whether pictures and documents in results stay; else a note stands for each.
        prune_after_rounds: results older than so many calls may be pruned, 1 or more.
        keep_results: names of tools whose results no pass makes stubs of, such as a search for
            tools.
        collapse_repeats: whether a pass puts a reference into the place of a result that a newer
            one says again word for word.
        prune_at_ratio: share of the usable window, above 0 and at most 1, from which a pass runs
            whatever it costs, if it takes off enough; None takes the preset's: 0.9, and 0.6 for
            `fixed`.
        relief_ratio: what is enough: the share of the usable window that such a pass takes off,
            above 0 and at most 1.
        rent_ratio: a pass runs when the stale tokens have cost so many times what the pass costs,
            above 0. The numbers are those that came nearest to the best possible schedule on
            recorded sessions (bench/relief.py).
        compact_at_ratio: share of the usable window, above 0 and at most 1, from which old history
            gives way to a summary, after pruning; None takes the preset's: 0.9, and 0.8 for `fixed`
            and `bound-once`, and not below `prune_at_ratio`.
        compact_to_ratio: share of it that a compaction aims at, above 0 and below that one.
        summary_ratio: share of it that summaries may take, above 0 and at most 0.5.
        summary: `model` asks the agent's model to sum up what is hidden, beside what is computed
            from the log; `digest` does not.
        nudge_at_rounds: rounds after which the model is reminded of the request, from 1; None for
            never. A round is an answer of the model and the tool calls that it asked for.
        nudge_every_rounds: rounds after which it is reminded again, from 1; None for never.
        cap_rounds: rounds after which the turn is handed back to the user, who may let it go on,
            from 1; None for never.
        cap_tokens: tokens after which it is, input and output of the agent and of all below it,
            from 1; None for never. They are counted before each call, so the last one may exceed
            it.
        cap_usd: their list price in US dollars after which it is, above 0; None for never.
        stall_nudge_repeats: rounds in a row with the same calls and the same results after which
            the model is told, from 2; None for never.
        stall_stop_repeats: such rounds after which the turn is handed back, from 2; None for never.
        resets: `request` counts rounds from the last message that asks for something, so that "ok"
            and "continue" do not let a turn run on for ever; `message` from the last message.
        window_tokens: the model's window; None takes the known one.
        write_ratio: price of a token written to the cache, relative to plain input; None takes that
            of the model and lifetime.
        read_ratio: price of a token read from it; None takes that of the model.
        start_tokens_per_char: the estimate before the provider has reported usage, in (0, 2].
            The usual four characters a token.
        by_model: by the beginning of a model's id, other values for its calls of the knobs that say
            when its window is relieved; the longest beginning counts. `window_tokens` there is a
            limit in tokens for that model alone.

    Raises:
        PolicyError: a value outside its range.
    """

    name: Preset = "balanced"
    profile: Profile = "interactive"
    ttl: Lifetime | None = None
    pause_ratio: float = 0.0
    markers: Literal["auto", "force", "off"] = "auto"
    diagnostics: Literal["auto", "on", "off"] = "auto"
    fanout_wait_seconds: float = 30.0
    keep_warm_tokens: int = 0
    keep_warm_seconds: float = 3600.0
    identity: str | None = None
    tool_order: tuple[str, ...] = ()
    base_tools: tuple[str, ...] | None = None
    on_store_error: Literal["continue", "stop"] = "continue"
    on_mismatch: Literal["warn", "stop"] = "warn"
    max_result_chars: int = 50_000
    tool_result_chars: Mapping[str, int] = {}
    mcp_max_result_chars: int | None = None
    server_result_chars: Mapping[str, int] = {}
    keep_images: bool = True
    prune_after_rounds: int = 10
    keep_results: tuple[str, ...] = ()
    collapse_repeats: bool = False
    prune_at_ratio: float | None = None
    relief_ratio: float = 0.10
    rent_ratio: float = 0.64
    compact_at_ratio: float | None = None
    compact_to_ratio: float = 0.3
    summary_ratio: float = 0.1
    summary: Literal["model", "digest"] = "model"
    nudge_at_rounds: int | None = 25
    nudge_every_rounds: int | None = None
    cap_rounds: int | None = None
    cap_tokens: int | None = None
    cap_usd: float | None = None
    stall_nudge_repeats: int | None = 3
    stall_stop_repeats: int | None = 6
    resets: Literal["request", "message"] = "request"
    window_tokens: int | None = None
    write_ratio: float | None = None
    read_ratio: float | None = None
    start_tokens_per_char: float = 0.25
    by_model: Mapping[str, Mapping[str, float]] = {}

    def __post_init__(self) -> None:
        _one_of("name", self.name, ("balanced", "fixed", "bound-once", "off"))
        _one_of("profile", self.profile, ("interactive", "desktop", "fleet", "subagent"))
        _one_of("ttl", self.ttl, ("auto", "5m", "1h", None))
        _within("pause_ratio", self.pause_ratio or None, above=0, most=1)
        _one_of("markers", self.markers, ("auto", "force", "off"))
        _one_of("diagnostics", self.diagnostics, ("auto", "on", "off"))
        _between("fanout_wait_seconds", self.fanout_wait_seconds, least=0, most=600)
        _within("keep_warm_tokens", self.keep_warm_tokens, above=-1)
        _within("keep_warm_seconds", self.keep_warm_seconds, above=0)
        if self.identity is not None and not _is_told(self.identity):
            raise PolicyError(
                f"identity is {self.identity!r}.",
                next_step="Give the text that the provider demands, without white space around it.",
                knob="identity",
            )
        _one_of("on_store_error", self.on_store_error, ("continue", "stop"))
        _one_of("on_mismatch", self.on_mismatch, ("warn", "stop"))
        _within("start_tokens_per_char", self.start_tokens_per_char, above=0, most=2)
        _within("max_result_chars", self.max_result_chars, above=-1)
        _within("mcp_max_result_chars", self.mcp_max_result_chars, above=-1)
        for tool, chars in self.tool_result_chars.items():
            _within(f"tool_result_chars of {tool}", chars, above=-1)
        for server, chars in self.server_result_chars.items():
            _within(f"server_result_chars of {server}", chars, above=-1)
        _within("prune_after_rounds", self.prune_after_rounds, above=0)
        _within("prune_at_ratio", self.prune_at_ratio, above=0, most=1)
        _within("relief_ratio", self.relief_ratio, above=0, most=1)
        _within("rent_ratio", self.rent_ratio, above=0)
        _within("compact_at_ratio", self.compact_at_ratio, above=0, most=1)
        _within("compact_to_ratio", self.compact_to_ratio, above=0, most=1)
        _within("summary_ratio", self.summary_ratio, above=0, most=0.5)
        _one_of("summary", self.summary, ("model", "digest"))
        if self.prunes and self.hard_ratio < self.safety_ratio:
            raise PolicyError(
                f"compact_at_ratio is {self.hard_ratio}, prune_at_ratio {self.safety_ratio}.",
                next_step="Pruning comes first: give compact_at_ratio at least that number.",
                knob="compact_at_ratio",
            )
        if self.compact_to_ratio >= self.hard_ratio:
            raise PolicyError(
                f"compact_to_ratio is {self.compact_to_ratio}, and a compaction runs from "
                f"{self.hard_ratio} on.",
                next_step="Give it a lower number: each compaction must make room.",
                knob="compact_to_ratio",
            )
        self._rules()
        _within("window_tokens", self.window_tokens, above=0)
        _within("write_ratio", self.write_ratio, above=0)
        _within("read_ratio", self.read_ratio, above=0, most=1)
        if len(set(self.tool_order)) != len(self.tool_order):
            raise PolicyError(
                f"tool_order names a tool twice: {', '.join(self.tool_order)}.",
                next_step="Name each tool once.",
                knob="tool_order",
            )
        for model, knobs in self.by_model.items():
            self._check_knobs(model, knobs)

    def of(self, model: str) -> "Policy":
        """The policy for calls of a model.

        Args:
            model: its id, as the client names it.
        """
        names = [name for name in self.by_model if model.startswith(name)]
        return self._with(self.by_model[max(names, key=len)]) if names else self

    def _with(self, knobs: Mapping[str, float]) -> "Policy":
        # a number of rounds or tokens from a file may come as 10.0
        whole = {name: int(one) if one == one // 1 else one for name, one in knobs.items()}
        return replace(self, by_model={}, **whole)

    def _check_knobs(self, model: str, knobs: Mapping[str, float]) -> None:
        unknown = [name for name in knobs if name not in MODEL_KNOBS]
        if unknown or not model:
            raise PolicyError(
                f"by_model has {', '.join(unknown) or 'an empty name'} for {model!r}.",
                next_step=f"Name a model, and of the knobs some of {', '.join(MODEL_KNOBS)}.",
                knob="by_model",
            )
        broken = [name for name in _WHOLE if knobs.get(name, 1) % 1 != 0]
        if broken:
            raise PolicyError(
                f"by_model has {broken[0]} = {knobs[broken[0]]} for {model!r}.",
                next_step="Give a whole number.",
                knob="by_model",
            )
        try:
            self._with(knobs)
        except PolicyError as error:
            raise PolicyError(
                f"by_model for {model!r}: {error.what}", next_step=error.next_step, knob="by_model"
            ) from error

    def result_chars(self, tool: str, *, server: str = "") -> int:
        """The most characters of a result of that tool; 0 for no limit.

        Args:
            tool: its name.
            server: the MCP server that it belongs to; empty for none.
        """
        if self.name == "off":
            return 0
        usual = self.max_result_chars
        if server and self.mcp_max_result_chars is not None:
            usual = self.mcp_max_result_chars
        if server:
            usual = self.server_result_chars.get(server, usual)
        return self.tool_result_chars.get(tool, usual)

    @property
    def round_rules(self) -> RoundRules:
        """When a turn is steered. A cap that somebody sets holds in every preset."""
        if self.name == "off":
            return RoundRules(
                nudge_at_rounds=None,
                cap_rounds=self.cap_rounds,
                cap_tokens=self.cap_tokens,
                cap_usd=self.cap_usd,
                stall_nudge_repeats=None,
                stall_stop_repeats=None,
                resets=self.resets,
            )
        return self._rules()

    def _rules(self) -> RoundRules:
        return RoundRules(
            nudge_at_rounds=self.nudge_at_rounds,
            nudge_every_rounds=self.nudge_every_rounds,
            cap_rounds=self.cap_rounds,
            cap_tokens=self.cap_tokens,
            cap_usd=self.cap_usd,
            stall_nudge_repeats=self.stall_nudge_repeats,
            stall_stop_repeats=self.stall_stop_repeats,
            resets=self.resets,
        )

    @property
    def prunes(self) -> bool:
        """Whether old content gives way to stubs at all."""
        return self.name in {"balanced", "fixed"}

    @property
    def compacts(self) -> bool:
        """Whether old history gives way to summaries at all."""
        return self.name != "off"

    @property
    def hard_ratio(self) -> float:
        """Share of the usable window from which a compaction runs."""
        if self.compact_at_ratio is not None:
            return self.compact_at_ratio
        usual = 0.9 if self.name == "balanced" else 0.8
        return max(usual, self.safety_ratio) if self.prunes else usual

    @property
    def safety_ratio(self) -> float:
        """Share of the usable window from which a pass runs whatever it costs."""
        if self.prune_at_ratio is not None:
            return self.prune_at_ratio
        return 0.6 if self.name == "fixed" else 0.9

    @property
    def lifetime(self) -> Lifetime:
        """How the lifetime of cache entries is chosen."""
        return self.ttl or _LIFETIMES[self.profile]

    @property
    def entry_ttl(self) -> Ttl:
        """Lifetime that cache entries have as long as no pause is expected."""
        return "1h" if self.lifetime == "1h" else "5m"


def _within(knob: str, value: float | None, *, above: float, most: float = inf) -> None:
    if value is None or above < value <= most:
        return
    upper = "" if most == inf else f" and at most {most:g}"
    raise PolicyError(
        f"{knob} is {value}.", next_step=f"Give a number above {above:g}{upper}.", knob=knob
    )


def _between(knob: str, value: float, *, least: float, most: float) -> None:
    if least <= value <= most:
        return
    raise PolicyError(
        f"{knob} is {value}.", next_step=f"Give a number from {least:g} to {most:g}.", knob=knob
    )


def _is_told(text: object) -> bool:
    return isinstance(text, str) and text != "" and text == text.strip()


def _one_of(knob: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise PolicyError(
            f"{knob} is {value!r}.",
            next_step=f"Choose one of {', '.join(map(repr, allowed))}.",
            knob=knob,
        )
