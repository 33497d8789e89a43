"""A summariser of its own is shown a transcript that fits its window, and the agent goes on."""

import json

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from stage import agent_at, ask, config, exchanges_of, model_at
from test_compacting_agents import DONE, SMALL, SUMMARY, events_of, scan, scanning, texts_of

from barograph.audit.verify import verify_session
from barograph.core.errors import UsageError
from barograph.core.events import Compacted, SummaryAsked
from barograph.langchain import Barograph
from barograph.simulator import Reply

FIVE = [scanning(n) for n in range(5)]
SMALLER = "claude-haiku-4-5"


class Pair:
    """An agent, and a smaller model that sums up for it."""

    def __init__(self, simulator, session, store, told, *, window=6_000):
        self.simulator, self.session, self.store = simulator, session, store
        self.teller = f"{session}-teller"
        simulator.play(session, [*FIVE, DONE])
        simulator.play(self.teller, told)
        small = model_at(
            simulator.url,
            self.teller,
            model=SMALLER,
            max_tokens=900,
            profile={"max_input_tokens": window},
        )
        barograph = Barograph(store, policy=SMALL, summariser=small)
        self.agent = agent_at(simulator.url, session, store, [scan], middleware=[barograph])

    @property
    def asking(self):
        return exchanges_of(self.simulator, self.teller)

    def check(self):
        """Every request is in the log, of both models; the agent's are its own."""
        report = verify_session(self.store, self.session)
        assert report.findings == ()
        everything = [*exchanges_of(self.simulator, self.session), *self.asking]
        assert report.exact == report.derived == report.requests == len(everything)
        (fold,) = events_of(self.store, self.session, Compacted)
        return fold


def test_it_reads_a_transcript_that_fits_its_window(simulator, session, store):
    pair = Pair(simulator, session, store, [SUMMARY])
    answer = pair.agent.invoke(ask("go through all parts"), config(session))
    assert answer["messages"][-1].text == "Done."
    assert pair.check().narrated_by

    (asking,) = pair.asking
    body = json.loads(asking.request)
    assert body["model"] == SMALLER
    assert not {"tools", "system", "tool_choice"} & body.keys()
    transcript, directive = texts_of(asking.request)
    assert transcript.startswith('<record id="#')
    assert 'by="tool"' in transcript
    assert "scan: " in transcript
    assert "about to be replaced" in directive
    assert asking.total_tokens <= 6_000 - 900
    (asked,) = events_of(store, session, SummaryAsked)
    assert [part.text for part in asked.parts] == [transcript, directive]
    after = exchanges_of(simulator, session)[-1]
    assert "nothing odd was found" in " ".join(texts_of(after.request))
    assert "tools" in json.loads(after.request)


def test_the_same_holds_for_async_agents_and_none_of_it_is_in_the_stream(
    simulator, session, store, loop
):
    pair = Pair(simulator, session, store, [SUMMARY])

    async def stream():
        parts = pair.agent.astream(ask("go"), config(session), stream_mode="messages")
        return "".join([c.text async for c, _ in parts if c.type.startswith("AI")])

    assert loop.run(stream()) == "Scanning." * 5 + "Done."
    assert pair.check().narrated_by


def test_one_that_fails_twice_leaves_the_digest_alone(simulator, session, store):
    pair = Pair(simulator, session, store, [Reply(content="Sorry."), Reply(content="No.")])
    pair.agent.invoke(ask("go"), config(session))
    fold = pair.check()
    assert fold.narrated_by is None
    assert len(fold.failures) == 2


def test_a_transcript_that_was_too_long_after_all_is_half_as_long_then(simulator, session, store):
    pair = Pair(simulator, session, store, [SUMMARY])
    simulator.fault("overflow", session=pair.teller, index=0)
    pair.agent.invoke(ask("go"), config(session))
    (fold,) = events_of(store, session, Compacted)
    assert fold.narrated_by
    first, second = pair.asking
    assert (first.status, second.status) == (400, 200)
    assert len(texts_of(second.request)[0]) <= 0.51 * len(texts_of(first.request)[0])


def test_one_whose_requests_are_not_known_is_refused(store):
    with pytest.raises(UsageError, match="cannot be the summariser"):
        Barograph(store, summariser=FakeListChatModel(responses=["x"]))
