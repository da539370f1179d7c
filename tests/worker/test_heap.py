"""Garbage collections of a worker, in a process of their own: what they skip stays skipped for good."""

import subprocess
import sys

# Processor time, so that a busy machine makes no difference.
PROGRAM = """
import gc, time
import junhong_cmp.worker.run
from junhong_cmp.worker.heap import settle_heap

def collect_s():
    began = time.thread_time()
    gc.collect()
    return time.thread_time() - began

gc.collect()
before = min(collect_s() for _ in range(3))
settle_heap()
print(before, min(collect_s() for _ in range(3)))
"""


def test_a_full_collection_leaves_out_what_was_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    before, after = map(float, done.stdout.split())
    assert after < before / 10


def test_garbage_that_comes_later_is_collected() -> None:
    program = (
        "import gc, weakref\n"
        "from junhong_cmp.worker.heap import settle_heap\n"
        "class Node: pass\n"
        "settle_heap()\n"
        "node = Node(); node.itself = node; ref = weakref.ref(node); del node\n"
        "gc.collect()\n"
        "assert ref() is None\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
