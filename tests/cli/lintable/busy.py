"""A module that begins to work when it is imported, and would for two minutes."""

import sys
import threading
import time

threading.Thread(target=time.sleep, args=(120,)).start()


def give_up():
    sys.exit("there is no config")
