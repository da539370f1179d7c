"""The heap of a process that is about to work."""

import gc


def settle_heap() -> None:
    """Take what has been loaded until now out of all later garbage collections.

    Modules, classes and constants live as long as the process. Looking through their some hundred thousand
    objects again and again would hold the event loop for 50 to 100 ms each time, and an import, which makes
    many objects that live for a while, has that happen every other second.
    """
    gc.collect()
    gc.freeze()
