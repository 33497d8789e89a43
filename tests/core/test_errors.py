import inspect

import pytest

from barograph.core import errors
from barograph.core.errors import BarographError

ALL = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BarographError)
]


def test_every_error_has_a_code_of_its_own():
    assert len({kind.code for kind in ALL}) == len(ALL)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_says_what_happened_and_what_to_do_next(kind):
    error = kind("It broke.", next_step="Mend it.", seq=7)
    assert str(error) == "It broke. Mend it."
    assert (error.what, error.next_step, error.ids) == ("It broke.", "Mend it.", {"seq": 7})
    assert str(kind("It broke.")) == "It broke."


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_stands_in_the_drawn_tree(kind):
    assert kind.__name__ in errors.__doc__
