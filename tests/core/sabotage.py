"""Break each rule on purpose, and see that its test notices.

Each sabotage is one textual change of the source. It is made in a copy of `src`, the named test is
run against the copy and must fail; the checkout is never touched. Not part of the suite:

    python tests/core/sabotage.py            # all of them, as a table
    python tests/core/sabotage.py pairing    # those whose rule contains the word
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CODEC = "providers/anthropic/codec.py"
USAGE = "providers/anthropic/usage.py"


class Sabotage(NamedTuple):
    """A rule, the change that breaks it, and the test that must fail."""

    rule: str
    file: str
    old: str
    new: str
    test: str


ALL = [
    Sabotage(
        "1 model-visible means logged",
        "core/record.py",
        "        if sent == derived:",
        "        if sent == derived or where == '0':",
        "invariant_1_every_body",
    ),
    Sabotage(
        "1 durable before it leaves",
        "store/session.py",
        "        self._tail.commit(events, state)",
        "        self._tail.commit(events[:-1] or events, state)",
        "invariant_1_the_record_is_durable",
    ),
    Sabotage(
        "1 nothing is settled beyond a rewind",
        "core/paths.py",
        "settled=min(path.settled, max(0, surface.messages - 1)),",
        "settled=path.settled,",
        "test_a_client_that_goes_on",
    ),
    Sabotage(
        "1 a settled message is compared",
        "core/record.py",
        "        if is_settled and sent == before[number]:",
        "        if is_settled:",
        "test_a_settled_message_that_changes",
    ),
    Sabotage(
        "2 contiguous seqs",
        "core/surface.py",
        "        if seq != self.seq + 1:",
        "        if seq <= self.seq:",
        "invariant_2_a_log_with_a_gap",
    ),
    Sabotage(
        "2 append-only",
        "core/events.py",
        "class MessageSeen(_Event, frozen=True, kw_only=True",
        "class MessageSeen(_Event, frozen=False, kw_only=True",
        "invariant_2",
    ),
    Sabotage(
        "3 live state is the restored state",
        "core/work.py",
        "        self.events.append(logged)\n",
        "        self.events.append(logged)\n"
        "        if type(event).__name__ == 'CallFailed':\n"
        "            self.state = State(self.state.fold, self.state.calls + 1, self.state.paths)\n",
        "invariant_3_a_session_restored",
    ),
    Sabotage(
        "3 pure across processes",
        "core/surface.py",
        "            key = digest(key, entry.role.encode(), wire.text.encode())",
        "            key = digest(key, str(hash(entry.role)).encode(), wire.text.encode())",
        "invariant_3_another_process",
    ),
    Sabotage(
        "3 survives storage",
        "store/codec.py",
        "    event = _decoder.decode(record.data)",
        "    event = _decoder.decode(record.data.replace(b'tail', b'head'))",
        "invariant_3_a_round_trip",
    ),
    Sabotage(
        "4 byte stability",
        "core/intake.py",
        "    if matched < len(seen) or _answers_repair(work.state, given, new):",
        "    if False:",
        "test_a_shorter_history_is_a_rewind",
    ),
    Sabotage(
        "4 a departure is logged, never silent",
        "core/surface.py",
        "                changed = self.surface(event.path).appended(codec, entry)",
        "                changed = self.surface(event.path)\n"
        "                if len(changed.entries) == 5:\n"
        "                    changed = changed.cut(4)\n"
        "                changed = changed.appended(codec, entry)",
        "invariant_4_a_request_begins",
    ),
    Sabotage(
        "4 growing replaces nothing",
        "core/paths.py",
        "    key = bytes.fromhex(known_by) if known_by else unit_key(event.role, parts)",
        '    key = bytes.fromhex(known_by) if known_by else unit_key("user", parts)',
        "invariant_4_a_history_that_only_grows",
    ),
    Sabotage(
        "4 marking changes no other byte",
        CODEC,
        '    return f\'{block[:-1]},"cache_control":',
        '    return f\'{block[:-1].replace("e", "E", 1)},"cache_control":',
        "invariant_4_marking",
    ),
    Sabotage(
        "4 one canonical shape",
        CODEC,
        'f\'"tool_use_id":{_string(part.call_id)},"is_error":{error}}}\'',
        "f'\"tool_use_id\":{_string(part.call_id)}}}'",
        "invariant_4_the_renderer",
    ),
    Sabotage(
        "5 pairing: repairs",
        "core/ingest.py",
        "        yield from _repairs(pending)\n        pending, answered",
        "        pending, answered",
        "invariant_5_every_call",
    ),
    Sabotage(
        "5 pairing: repairs at the end",
        "core/ingest.py",
        "            pending = list(dict.fromkeys(calls_in(unit.parts)))\n"
        "    yield from _repairs(pending)",
        "            pending = list(dict.fromkeys(calls_in(unit.parts)))",
        "invariant_5_every_call",
    ),
    Sabotage(
        "5 pairing: second results",
        "core/ingest.py",
        "        pending.remove(call)",
        "        pass",
        "invariant_5_every_call",
    ),
    Sabotage(
        "5 pairing: results come first",
        "core/ingest.py",
        '    return [u for u in group if u.role == "tool"] + '
        '[u for u in group if u.role != "tool"]',
        "    return list(group)",
        "test_results_come_before",
    ),
    Sabotage(
        "5 pairing: one id once",
        CODEC,
        "                if not calls.isdisjoint(called):",
        "                if False:",
        "invariant_5_every_call",
    ),
    Sabotage(
        "5 pairing: a cut in a group",
        "core/intake.py",
        "    rulings = list(rule(new, *last_calls(work.state.surface(given.path).entries)))",
        "    rulings = list(rule(new, ()))",
        "invariant_5_every_call",
    ),
    Sabotage(
        "5 pairing: a logged result is the call's own",
        "core/intake.py",
        "len(sendable) == 1 and results_in(sendable) == (call,)",
        "sendable",
        "invariant_5_every_call",
    ),
    Sabotage(
        "5 what the provider refuses",
        CODEC,
        "        if not text or text.isspace():",
        "        if not text:",
        "invariant_5_no_request",
    ),
    Sabotage(
        "5 arguments are an object",
        CODEC,
        "    if not isinstance(value, dict):",
        "    if value is None:",
        "invariant_5_no_request",
    ),
    Sabotage(
        "5 a final assistant text",
        "core/intake.py",
        "codec.sendable(ruling.parts, prefill=True) if is_prefill else ruling.parts",
        "ruling.parts",
        "invariant_5_a_final",
    ),
    Sabotage(
        "5 a final answer of the model",
        "core/intake.py",
        "        received = codec.sendable(path.answer.parts, prefill=is_prefill)",
        "        received = codec.sendable(path.answer.parts)",
        "invariant_5_a_final",
    ),
    Sabotage(
        "6 nothing that was shown is lost",
        "core/intake.py",
        "            reason=ruling.verdict,\n            native_id=ruling.native_id,\n"
        "            parts=ruling.parts,",
        "            reason=ruling.verdict,\n            native_id=ruling.native_id,",
        "invariant_6",
    ),
    Sabotage(
        "7 at most four, reserved counted",
        "core/breakpoints.py",
        "    free = SLOTS - view.reserved",
        "    free = SLOTS",
        "invariant_7_markers_are",
    ),
    Sabotage(
        "7 eligible blocks only, the planner",
        "core/breakpoints.py",
        "    while position and not segments[position - 1].markable:",
        "    while position and False:",
        "a_plan_is_legal",
    ),
    Sabotage(
        "7 eligible blocks only, the codec",
        CODEC,
        "            return WireBlock(text, markable=False)\n        return WireBlock(part.block",
        "            return WireBlock(text, markable=True)\n        return WireBlock(part.block",
        "invariant_7_markers_are or only_eligible",
    ),
    Sabotage(
        "7 long before short",
        "core/breakpoints.py",
        '            ttl="1h" if last_long >= 0 else "5m",',
        '            ttl="5m",',
        "invariant_7_markers_are",
    ),
    Sabotage(
        "7 the minimum, messages",
        "core/breakpoints.py",
        "    return view.is_cacheable(view.header_chars + view.segments[position - 1].end_chars)",
        "    return True",
        "invariant_7_no_marker",
    ),
    Sabotage(
        "7 the minimum, header",
        "core/breakpoints.py",
        "view.header_level is not None and view.is_cacheable(view.header_chars)",
        "view.header_level is not None",
        "invariant_7_no_marker",
    ),
    Sabotage(
        "7 the learned ratio",
        "core/pressure.py",
        "    return factors[model].tokens_per_char if model in factors else start",
        "    return 2.0",
        "invariant_7_no_marker",
    ),
    Sabotage(
        "7 the anchor is the last tail",
        "core/breakpoints.py",
        '(anchor.position if anchor and anchor.level == "messages" else 0, "anchor")',
        '(anchor.position - 1 if anchor and anchor.level == "messages" else 0, "anchor")',
        "invariant_7_the_anchor",
    ),
    Sabotage(
        "7 the anchor depends on the header",
        "core/paths.py",
        "            scope = codec.scope_of(event.system, event.tools, event.parameters)",
        "            scope = path.scope",
        "another_system",
    ),
    Sabotage(
        "B3 cite all, contiguous",
        "core/surface.py",
        "            if tuple(seqs[start : start + len(shadows)]) == tuple(shadows):",
        "            if shadows:",
        "invariant_b3_a_citation",
    ),
    Sabotage(
        "B3 cited seqs exist",
        "core/surface.py",
        "        if shadows and shadows[0] in seqs:\n            start = seqs.index(shadows[0])",
        "        if seqs:\n            return 0",
        "invariant_b3_a_citation",
    ),
    Sabotage(
        "B3 pairing",
        "core/surface.py",
        "        if faults:",
        "        if False:",
        "invariant_b3_a_run_that_parts",
    ),
    Sabotage(
        "B3 what follows moves up",
        "core/surface.py",
        "            after = [new, *after]",
        "            after = [*after, new]",
        "invariant_b3_a_replacement",
    ),
    Sabotage(
        "B9 versions share nothing that changes",
        "core/trail.py",
        "        return items if self._length and len(items) == self._length else self.span()",
        "        return items if self._length else self.span()",
        "invariant_b9_an_older_state",
    ),
    Sabotage(
        "B9 derived values are frozen",
        "core/surface.py",
        "class Entry(Struct, frozen=True):",
        "class Entry(Struct):",
        "invariant_b9_nothing_derived",
    ),
    Sabotage(
        "C1 C3 the tail is marked",
        "core/breakpoints.py",
        "    tail = last_markable(view.segments, len(view.segments))",
        "    tail = last_markable(view.segments, len(view.segments) - 1)",
        "invariant_c1_c3",
    ),
    Sabotage(
        "C3 C4 the anchor is found at any width",
        "core/breakpoints.py",
        '(anchor.position if anchor and anchor.level == "messages" else 0, "anchor")',
        '(0, "anchor")',
        "invariant_c3_c4",
    ),
    Sabotage(
        "C2 the header mark",
        "core/engine.py",
        '        return "system", blocks - 1',
        '        return "system", 0',
        "invariant_c2",
    ),
    Sabotage(
        "C6 shape stability",
        CODEC,
        '        content = ",".join(_marked(block, marks.get(i))',
        '        content = (", " if marks else ",").join(_marked(block, marks.get(i))',
        "invariant_c6",
    ),
    Sabotage(
        "C7 no marker below the minimum",
        "core/breakpoints.py",
        "        return chars * self.tokens_per_char >= self.facts.minimum_tokens",
        "        return True",
        "invariant_c7",
    ),
    Sabotage(
        "C7 the minimum of each model",
        "providers/anthropic/models.py",
        '_row("claude-opus-4-8", 1024, (5, 25))',
        '_row("claude-opus-4-8", 4096, (5, 25))',
        "c7_every_model",
    ),
    Sabotage(
        "M2 arguments as received",
        CODEC,
        "one_spelling(part.arguments) if self._respell else part.arguments",
        "one_spelling(part.arguments)",
        "m2_arguments_go_back",
    ),
    Sabotage(
        "M2 the answer is preferred to its copy",
        "core/intake.py",
        '    if ruling.role == "assistant" and path.answer is not None:',
        "    if False:",
        "invariant_m2",
    ),
    Sabotage(
        "M2 respelled, key order kept",
        "core/canonical.py",
        '    return text if value is None else dump_json(value).decode("utf-8", "replace")',
        '    return text if value is None else canonical_json(value).decode("utf-8", "replace")',
        "m2_respelled",
    ),
    Sabotage(
        "M2 rendering is pinned",
        CODEC,
        '        return f\'{{"role":"{speaker}","content":[{content}]}}\'.encode()',
        '        return f\'{{"content":[{content}],"role":"{speaker}"}}\'.encode()',
        "golden_bytes",
    ),
    Sabotage(
        "usage: split beside a zero total",
        USAGE,
        '    written = _count(details.get("cache_creation")) + short + long',
        '    written = _count(details.get("cache_creation"))',
        "langchains_fields",
    ),
    Sabotage(
        "usage: absent is not zero",
        USAGE,
        "    if not total and not read and not written:\n",
        "    if False:\n",
        "langchains_fields",
    ),
    Sabotage(
        "9 the current request is not compacted",
        "core/spans.py",
        "_between(stays, cuts, ((0, first), (last + 1, newest))):",
        "_between(stays, cuts, ((0, newest),)):",
        "invariant_9_the_current_request",
    ),
    Sabotage(
        "9 the newest round is not compacted",
        "core/spans.py",
        '        if entries[index].role == "assistant":',
        "        if not entries:",
        "invariant_9_the_current_request",
    ),
    Sabotage(
        "9 a summary quotes what is pinned",
        "core/compaction.py",
        "pinned=one.seq in path.pinned",
        "pinned=False",
        "invariant_9_pinned_words",
    ),
    Sabotage(
        "9 a pin is no stub",
        "core/prune.py",
        "if not candidate.pinned and index not in self.kept:",
        "if index not in self.kept:",
        "invariant_9_no_pass",
    ),
    Sabotage(
        "9 a call that waits stays shown",
        "core/compaction.py",
        "kept_calls=work.state.path(path).waiting.kept",
        "kept_calls=frozenset()",
        "test_a_call_that_waits",
    ),
    Sabotage(
        "6 a summary cites what an earlier one hid",
        "core/surface.py",
        "for one in entry.hides or (entry.seq,))",
        "for one in (entry.seq,))",
        "test_a_later_summary_stands",
    ),
    Sabotage(
        "5 compaction cuts at legal places",
        "core/spans.py",
        "    cuts = Pairing().cuts(entries)",
        "    cuts = list(range(len(entries) + 1))",
        "test_a_run_of_any_length",
    ),
    Sabotage(
        "11 a tool states no rule",
        "core/notes.py",
        '    if role == "user" and origin == "caller" and text.strip():',
        '    if role in ("user", "tool") or text.strip():',
        "test_only_the_caller",
    ),
    Sabotage(
        "11 foreign text in a digest is escaped",
        "core/digestlines.py",
        "    return guarded(printable(text))",
        "    return printable(text)",
        "invariant_11_no_tool_and_no_argument",
    ),
    Sabotage(
        "11 foreign text in a digest stands on one line",
        "core/digestlines.py",
        "    return guarded(printable(text))",
        "    return guarded(text)",
        "invariant_11_no_tool_and_no_argument",
    ),
    Sabotage(
        "11 pasted text opens no section of a digest",
        "core/digestlines.py",
        "    return _HEADING.sub(",
        "    return _OURS.sub(",
        "invariant_11_a_pasted_text",
    ),
    Sabotage(
        "11 a summary is nobody's speech",
        "core/notes.py",
        "    if is_summary(parts):",
        "    if False:",
        "test_a_summary_is_nobodys_speech",
    ),
    Sabotage(
        "9 rules come first in a digest",
        "core/digest.py",
        '        "pinned": _pinned(notes),\n        "rules": _rules(said),\n',
        "",
        "test_rules_and_user_turns_survive",
    ),
    Sabotage(
        "a digest keeps its budget",
        "core/digest.py",
        "            cost_chars += len(DIGEST_HEADINGS[section]) + 1",
        "            cost_chars += len(DIGEST_HEADINGS[section]) - 9",
        "test_a_digest_is_never_longer",
    ),
    Sabotage(
        "what the user corrected is not repeated",
        "core/digest.py",
        "    invalid = corrected(statements)",
        "    invalid = dict[int, int]()",
        "test_a_corrected_value",
    ),
    Sabotage(
        "a call that failed touched no file",
        "core/digestlines.py",
        "result.text) for call, result, failed in self._done if not failed",
        "result.text) for call, result, failed in self._done",
        "test_files_plan_and_facts",
    ),
    Sabotage(
        "a prohibition does not give way to a remark",
        "core/corrections.py",
        "    return earlier.prohibits and not later.is_rule",
        "    return False",
        "test_where_that_is_not_plain",
    ),
    Sabotage(
        "J6 agents below spend what is above them",
        "core/learning.py",
        "(name, *paths_above(name))",
        "(name,)",
        "test_agents_below_spend",
    ),
    Sabotage(
        "J6 agents below stop with those above them",
        "core/steering.py",
        "for name in paths_above(path))",
        "for name in ())",
        "test_an_agent_below_stops",
    ),
]


def run(sabotage: Sabotage) -> tuple[Sabotage, str]:
    """Break the rule in a copy; gives what came of the test."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        file = source / "barograph" / sabotage.file
        text = file.read_text()
        if text.count(sabotage.old) != 1:
            return sabotage, "the source has changed: mend this sabotage"
        file.write_text(text.replace(sabotage.old, sabotage.new))
        found = subprocess.run(
            [
                sys.executable, "-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider",
                "--no-header", "--hypothesis-profile", "unshrunk", "-k", sabotage.test,
                "tests/core", "tests/providers",
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    failed = [line for line in found.stdout.splitlines() if line.startswith("FAILED")]
    if found.returncode == 1 and failed:
        return sabotage, "caught by " + failed[0].split("::")[1].split(" - ")[0]
    return sabotage, f"NOT CAUGHT (pytest exit {found.returncode})"


def main(words: list[str]) -> int:
    """Run the sabotages whose rule contains one of the words."""
    chosen = [s for s in ALL if not words or any(word in s.rule for word in words)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = []
        for number, result in enumerate(pool.map(run, chosen), start=1):
            sys.stderr.write(f"{number}/{len(chosen)} {result[0].rule}: {result[1]}\n")
            results.append(result)
    out = sys.stdout
    out.write("| invariant | sabotage | outcome |\n|---|---|---|\n")
    for sabotage, outcome in results:
        change = " / ".join(line.strip() for line in sabotage.new.splitlines())
        change = change.replace("|", "\\|")
        out.write(f"| {sabotage.rule} | `{sabotage.file}`: `{change}` | {outcome} |\n")
    missed = [s for s, outcome in results if not outcome.startswith("caught")]
    out.write(f"\n{len(results) - len(missed)} of {len(results)} caught.\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
