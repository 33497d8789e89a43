"""The front door: what `import barograph` gives, and what it does not load."""

import subprocess
import sys

import pytest

import barograph

FRAMEWORKS = ("langchain", "langchain_core", "anthropic", "httpx2", "pydantic", "starlette", "rich")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_it_loads_no_framework_and_no_database():
    code = f"""
import sys, barograph
print([name for name in {(*FRAMEWORKS, "sqlite3", "zstandard")!r} if name in sys.modules])
"""

    assert run(code).stdout.strip() == "[]"


def test_the_core_and_the_codecs_load_no_framework():
    code = f"""
import sys
import barograph.core.engine, barograph.core.readback, barograph.providers.registry
print([name for name in {FRAMEWORKS!r} if name in sys.modules])
"""

    assert run(code).stdout.strip() == "[]"


def test_importing_it_costs_little_more_than_the_interpreter():
    code = """
import time
began = time.process_time()
import barograph
print(time.process_time() - began)
"""

    # the best of several, in processor time: a busy machine can only make it slower
    assert min(float(run(code).stdout) for _ in range(5)) < 0.06


def test_without_the_extra_the_adapter_says_what_to_install():
    code = """
import sys
sys.modules["langchain"] = None
import barograph.langchain
"""

    ran = run(code)

    assert ran.returncode
    assert "pip install 'barograph[langchain]'" in ran.stderr


@pytest.mark.parametrize("name", barograph.__all__)
def test_every_exported_name_is_there(name):
    assert getattr(barograph, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        barograph.nothing_of_ours  # noqa: B018 - looking is the test
