"""What `import barograph` costs beyond the bare interpreter, as whole processes in turn."""

import subprocess
import sys
import time

_RUNS = 15


def _seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own interpreter
    return time.perf_counter() - began


def main() -> None:
    """Print the medians; the two are measured in turn, so that a slow moment hits both."""
    pairs = [(_seconds("pass"), _seconds("import barograph")) for _ in range(_RUNS)]
    bare = sorted(pair[0] for pair in pairs)[_RUNS // 2]
    extra = sorted(after - before for before, after in pairs)[_RUNS // 2]
    print(f"interpreter {bare * 1000:.0f} ms, import barograph {extra * 1000:+.0f} ms")


if __name__ == "__main__":
    main()
