"""Every case in the folder that `BAROGRAPH_CASES` names holds, or is not possible yet."""

import pytest

from cases import not_yet
from cases.kit import ABSENT, case_files, folder, read_case
from cases.registry import OPS, PROPERTIES, load
from cases.words import check_vocabulary

load()
ABOUT_ERRORS = {"raises", "errors_surfaced", "ends", "provider_rejections", "user_inputs_needed"}

if folder() is None:
    pytest.skip(ABSENT, allow_module_level=True)


@pytest.mark.parametrize("name", case_files())
def test_case(name, tmp_path):
    case = read_case(case_files()[name])
    check_vocabulary(case)
    played = {f"form:{form}" for form in OPS[case.op].forms} if case.op in OPS else set()
    blocked = not_yet.blocking(case.words() - played)
    if blocked:
        pytest.skip(f"not yet: {reasons(blocked)}")
    seen = OPS[case.op].run(case, tmp_path)
    waits = dict.fromkeys(not_yet.touched_by(case.words()))
    touched = list(waits)
    held, faults = [], []
    for prop in case.properties:
        capability = not_yet.judged_elsewhere(prop, touched)
        if capability is not None:
            waits[capability] = None
            continue
        arguments = {key: value for key, value in prop.items() if key != "prop"}
        found = list(PROPERTIES[prop["prop"]](seen, **arguments))
        faults += [f"{prop['prop']}: {fault}" for fault in found]
        held.append(prop["prop"])
    if not waits and not {prop["prop"] for prop in case.properties} & ABOUT_ERRORS:
        faults += [f"nobody scripted this error: {error!r}" for error in unscripted(seen)]
    assert not faults, "\n".join(faults)
    if waits:
        rest = f"; what holds: {', '.join(dict.fromkeys(held))}" if held else ""
        pytest.skip(f"not yet: {reasons(waits)}{rest}")


def unscripted(seen):
    """Errors that reached the caller though the case prescribes none."""
    prescribed = sum(one.scripted for one in seen.sent)
    return seen.errors[prescribed:]


def reasons(capabilities):
    return "; ".join(f"{one.name} ({one.reason})" for one in capabilities)
