"""How much of what later actions need a stub shows, measured as the bench does."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from barograph.core.stubs import StubShape

BENCH = Path(__file__).parents[2] / "bench" / "stubs.py"


@pytest.fixture
def bench(monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_stubs", BENCH)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def call(number, append, response):
    return {
        "call": number, "t": None, "model": "m", "agent": "main", "system": None, "tools": None,
        "append": append, "response": response, "stop_reason": "tool_use", "usage": None,
        "events": [],
    }  # fmt: skip


def answer(number, said):
    block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": said}
    return [{"role": "user", "content": [block]}]


def use(number, **given):
    return [{"type": "tool_use", "id": f"t{number}", "name": "read", "input": given}]


FILLING = "nothing of interest\n" * 60


def record(folder, texts, last):
    """A session whose calls get these results, and whose last call says something."""
    begin = [{"role": "user", "content": "begin"}]
    lines = [call(1, begin, use(1, path="x"))]
    lines += [
        call(n + 1, answer(n, text), use(n + 1, path="x")) for n, text in enumerate(texts, start=1)
    ]
    lines[-1]["response"] = use(len(texts) + 1, path=last)
    (folder / "oslo.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


def counts(bench, folder):
    corpus = bench.read_corpus(folder, lambda _: True)
    return sum(len(result.late) for result in corpus.results), len(corpus.shown_once)


NAMED = FILLING + "src/deep.py:7 is here\n" + FILLING


def test_a_fact_is_late_if_nobody_used_it_for_ten_rounds(bench, tmp_path):
    record(tmp_path, [NAMED, *["ok"] * 10], "src/deep.py")
    assert counts(bench, tmp_path) == (1, 1)
    record(tmp_path, [NAMED, *["ok"] * 9], "src/deep.py")
    assert counts(bench, tmp_path) == (0, 0)


def test_a_fact_that_was_shown_again_is_late_but_not_shown_once(bench, tmp_path):
    record(tmp_path, [NAMED, *["ok"] * 9, NAMED], "src/deep.py")
    assert counts(bench, tmp_path) == (1, 0)


def test_a_fact_that_was_used_before_is_not_late(bench, tmp_path):
    record(tmp_path, ["ok", NAMED, *["ok"] * 11], "x")
    assert counts(bench, tmp_path) == (0, 0)


def test_an_index_shows_what_head_and_tail_hide(bench, tmp_path):
    record(tmp_path, [NAMED, *["ok"] * 10], "src/deep.py")
    corpus = bench.read_corpus(tmp_path, lambda _: True)
    plain, ours = (bench.measure(corpus, s) for s in (bench.ends(150, 150), bench.indexed(SHAPE)))
    assert (plain.facts, plain.late) == (0, 0)
    assert (ours.facts, ours.late, ours.shown_once) == (1, 1, 1)
    assert ours.chars < 0.2


SHAPE = StubShape()


@pytest.mark.corpus
@pytest.mark.skipif("BAROGRAPH_CORPUS" not in os.environ, reason="BAROGRAPH_CORPUS is not set")
def test_on_recorded_sessions_the_default_stub_reaches_its_bar(bench):
    corpus = bench.read_corpus(Path(os.environ["BAROGRAPH_CORPUS"]), lambda _: True)
    shares = bench.measure(corpus, bench.indexed(SHAPE))
    assert shares.chars <= 0.13
    assert shares.facts >= 0.45
    assert shares.plain >= 0.45
    assert shares.late >= 0.80
    assert shares.shown_once >= 0.80
