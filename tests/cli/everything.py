"""One session with everything in it: hits, breaks, failures, hostile text."""

from talk import TOOLS, Talk

HOSTILE = (
    "3 pages\n\x1b[2J\x1b]0;pwned\x07\x9b31m [bold red]hi[/] [link=file:///x]y[/link] "
    "\u202egnp.exe\u2066 \r\x7f\x08 \ud7ff\ufeff\u2028 :smile:"
)
"""Clears the screen, renames the window, forges colour, turns text around, spoofs markup."""

CODE = "def total(items):\n    return sum(item.price for item in items)\n" * 60


def record(store):
    """Ten calls: held, broken by tools, expired, failed, unreported, unanswered, never sent."""
    talk = Talk(store, "refactor-billing")
    talk.at = 1_795_000_000.0
    talk.call(
        say="Fix the failing test in billing.",
        reply=[("read", {"path": "billing.py"}), ("search", {"words": HOSTILE})],
        results=[CODE, HOSTILE],
    )
    talk.call(reply=[("read", {"path": "test_billing.py"})], results=["assert total([]) == 0"])
    talk.call(path="main/researcher#1", say="Find the rule.", reply="Banker's rounding.")
    talk.call(reply="The test is wrong.")
    talk.tools = [TOOLS[0], TOOLS[1] | {"description": f"Search as of 12:05. {HOSTILE}"}]
    talk.call(say="Are you sure?", reply="Yes.")
    talk.call(say="Please fix it then.", reply="Done.", after=400)
    talk.call(say="Thanks", fails=(529, f"Overloaded {HOSTILE}"))
    talk.call(reply="You are welcome.", usage=False)
    talk.call(say="Hello?", answers=False)
    talk.call(say="Anybody?", leaves=False)
