"""The list of rules that are broken on purpose fits the source as it is."""

import pytest
from sabotage import ALL, ROOT


@pytest.mark.parametrize("one", ALL, ids=[one.rule for one in ALL])
def test_a_sabotage_changes_one_place(one):
    text = (ROOT / "src" / "barograph" / one.file).read_text(encoding="utf-8")
    assert text.count(one.old) == 1
