"""The heap of a process that is about to work."""

import gc
from typing import Final

YOUNG_OBJECTS: Final = 20_000
"""How many new objects bring on a collection of the young ones; the interpreter's own is 700.

Some hundred turns under way hold ten thousand objects, none of them garbage. With 700 each is looked at
several times during its short life, which was a tenth of the time of a poll. What is left in cycles
meanwhile is some 2 MB at most.
"""


def settle_heap() -> None:
    """Take what has been loaded until now out of all later garbage collections, and make these rarer.

    Modules, classes and constants live as long as the process. Looking through their some hundred thousand
    objects again and again would hold the event loop for 60 to 120 ms each time, and an import, which makes
    many objects that live for a while, has that happen every other second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
