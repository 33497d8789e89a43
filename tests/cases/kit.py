"""Find the cases and their kit.

`BAROGRAPH_CASES` names the folder of the cases, `BAROGRAPH_CASEKIT` the kit, which expands what a
case writes short and holds predicates over single requests. By default it is the `casekit.py` in
the folder of the cases, or beside it.
"""

import json
import os
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "BAROGRAPH_CASES"
KIT = "BAROGRAPH_CASEKIT"
ABSENT = f"{FOLDER} names no folder of cases"


class Case(NamedTuple):
    """One report: what happens, and what must hold then."""

    id: str
    op: str
    form: str
    given: dict[str, Any]
    properties: tuple[dict[str, Any], ...]

    @property
    def settings(self):
        return self.given.get("settings") or {}

    def words(self):
        """All that the case speaks of, each word with its kind."""
        found = {f"op:{self.op}", f"form:{self.form}"}
        found |= {f"input:{key}" for key in self.given if key not in ("op", "form", "settings")}
        found |= {f"setting:{key}" for key in self.settings}
        found |= {f"usage:{one.get('provider')}" for one in self.given.get("usages", ())}
        return found


def folder():
    """The folder of the cases, or None."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


@cache
def kit():
    """The kit, as a module."""
    named = os.environ.get(KIT)
    if not named:
        places = (folder() / "casekit.py", folder().parent / "casekit.py")
        named = next((str(place) for place in places if place.is_file()), str(places[0]))
    spec = spec_from_file_location("casekit", named)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{KIT} must name the kit of the cases; {named} is none.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def case_files():
    """Every case file under the folder, by the id of its case."""
    if folder() is None:
        return {}
    found = sorted(folder().rglob("*.json"))
    if not found:
        raise FileNotFoundError(f"{FOLDER} is {folder()}, which holds no case.")
    return {path.stem: path for path in found}


def read_case(path):
    """Read one case and expand it."""
    raw = json.loads(path.read_text("utf-8"))
    form = raw["input"].get("form", "anthropic")
    given = kit().expand(raw["input"], form)
    return Case(raw["id"], given["op"], form, given, tuple(raw["expect"]["props"]))
