"""Agents with skills: the index comes once, a skill is read when it is needed."""

import pytest
from stage import Run, calling, prove, prove_sound, sent_texts

from barograph.core.events import FrameComposed, SourceKept
from barograph.core.policy import Policy
from barograph.frame import skills
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def put(folder, name, description, text="Do it well."):
    path = folder / name / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{text}\n", "utf-8")


@pytest.fixture
def folder(tmp_path):
    for name in ("deploy", "pdf", "review"):
        put(tmp_path, name, f"{name} " * 20, f"How to {name}.")
    return tmp_path


@pytest.fixture
def run(simulator, session, store, folder):
    def make(*, budget_chars=8_000, **more):
        frame = [skills(folder, budget_chars=budget_chars)]
        return Run(simulator, session, store, {"frame": frame, **more})

    return make


def loading(number, name, **more):
    return calling((f"l{number}", "load_skill", {"name": name, **more}))


def changes(agent):
    return [[one.change for one in frame.sections] for frame in agent.of(FrameComposed)]


def requests(agent):
    return ["\n".join(text or "" for text in sent_texts(one)) for one in agent.exchanges]


def test_a_skill_is_listed_read_and_never_listed_again(run, store, session):
    agent = run()
    messages = agent.say("Fill the form.", loading(1, "pdf"), DONE)
    agent.say("And another.", loading(2, "review"), DONE)
    agent.say("Thanks.", DONE)

    assert any("How to pdf." in str(one.content) for one in messages)
    assert changes(agent) == [["new"], [], []]
    assert requests(agent)[-1].count("Skills are instructions") == 1
    assert [(one.source, one.key) for one in agent.of(SourceKept)] == [
        ("skills", "pdf"),
        ("skills", "review"),
    ]
    prove(store, session, agent.exchanges)


def test_where_not_all_are_described_the_index_changes_with_the_first_use_only(run, store, session):
    agent = run(budget_chars=460)
    agent.say("Fill the form.", loading(1, "review"), DONE)
    agent.say("Again.", loading(2, "review"), loading(3, "deploy"), DONE)
    agent.say("Again.", loading(4, "deploy"), loading(5, "review"), DONE)
    agent.restart()
    agent.say("Thanks.", DONE)

    assert changes(agent) == [["new"], ["changed"], [], []]
    first, second = (frame.parts[0].text for frame in agent.of(FrameComposed)[:2])
    assert "Others are: review" in first
    assert "Others are: pdf" in second
    prove(store, session, agent.exchanges)


def test_names_are_shown_whatever_the_budget(run):
    agent = run(budget_chars=1)
    agent.say("Hello.", DONE)
    assert "They are: deploy, pdf, review\n</context>" in requests(agent)[0]


def test_what_changes_in_the_folder_is_told_with_the_next_turn(run, folder, store, session):
    agent = run()
    agent.say("Hello.", DONE)
    put(folder, "tests", "Write tests.")
    agent.say("Hello.", DONE)
    for name in ("deploy", "pdf", "review", "tests"):
        (folder / name / "SKILL.md").unlink()
    agent.say("Hello.", DONE)

    assert changes(agent) == [["new"], ["changed"], ["removed"]]
    assert "- tests: Write tests." in requests(agent)[1]
    prove(store, session, agent.exchanges)


def test_turned_off_there_is_no_tool_and_what_was_listed_is_taken_back(run, folder, session):
    agent = run()
    agent.say("Hello.", DONE)
    agent.ours["frame"] = [skills(folder, budget_chars=0)]
    agent.restart()
    agent.say("Hello.", DONE)

    assert changes(agent) == [["new"], ["removed"]]
    assert b'"load_skill"' in agent.exchanges[0].request
    assert b'"load_skill"' not in agent.exchanges[1].request


def test_private_runs_have_skills_and_leave_nothing(folder):
    private = Barograph(mode="private", frame=[skills(folder)])
    assert "load_skill" in {tool.name for tool in private.tools}


def test_a_long_skill_is_bounded_as_any_result(run, folder, store, session):
    put(folder, "pdf", "Long.", "line of text\n" * 1_000)
    agent = run(policy=Policy(max_result_chars=2_000))
    messages = agent.say("Fill the form.", loading(1, "pdf"), DONE)

    assert b"characters are left out here" in agent.exchanges[-1].request
    assert any(len(str(one.content)) > 10_000 for one in messages)
    prove_sound(store, session, agent.exchanges)


def test_a_name_that_there_is_not_is_an_answer(run):
    agent = run()
    messages = agent.say("Fill the form.", loading(1, "pdfs"), DONE)
    assert any("There is no skill 'pdfs'. Choose from: pdf" in str(m.content) for m in messages)
    assert agent.of(SourceKept) == []


def test_a_file_that_holds_no_text_is_an_answer(run, folder):
    (folder / "pdf" / "a.bin").write_bytes(b"\0")
    agent = run()
    messages = agent.say("Fill the form.", loading(1, "pdf", file="a.bin"), DONE)
    assert any("cannot be read" in str(message.content) for message in messages)


def test_the_tool_is_one_of_ours_which_no_server_takes():
    from barograph.core.tooling import name_server_tools

    assert name_server_tools([("a", "load_skill")], {}) == {("a", "load_skill"): "a_load_skill"}
