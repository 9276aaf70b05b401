"""What arrives together is worked on together, each with its own answer."""

import asyncio
import re
import threading
import time

import numpy as np
import pytest

import ilhash
from ilhash.serve._batches import Batcher


class Work:
    """Doubles numbers, one call at a time, each as long as it is told; a list of n numbers is n rows."""

    def __init__(self, seconds=0.0):
        self.calls, self.seconds, self.go = [], seconds, threading.Event()
        self.go.set()

    def __call__(self, asked):
        self.go.wait(10)
        self.calls.append([list(one) for one in asked])
        time.sleep(self.seconds)
        return [ValueError("odd") if one[0] % 2 else [2 * number for number in one] for one in asked]


def run(work, asks, **options):
    """Ask all at the same time; return the answers, and what ``seen`` was told."""
    seen = []
    batcher = Batcher("test", work, seen=lambda rows, n: seen.append((rows, n)), **options)

    async def ask():
        return await asyncio.gather(*(batcher.ask(one) for one in asks), return_exceptions=True)

    try:
        return asyncio.run(ask()), seen
    finally:
        batcher.close()


def test_each_gets_its_own_answer():
    answers, seen = run(Work(0.01), [[number] for number in range(50)])
    for number, answer in enumerate(answers):
        assert str(answer) == "odd" if number % 2 else answer == [2 * number]
    assert sum(n for _, n in seen) == 50
    assert len(seen) < 10  # while one call runs the others gather


def test_no_call_is_larger_than_it_may_be():
    work = Work(0.005)
    run(work, [[0] * size for size in (3, 3, 3, 20, 1, 1, 9)], most=7)
    sizes = [sum(map(len, call)) for call in work.calls]
    assert sum(sizes) == 40
    assert all(size <= 7 or len(call) == 1 for size, call in zip(sizes, work.calls, strict=True))


def test_nobody_waits_where_nobody_comes():
    work = Work()
    began = time.monotonic()
    run(work, [[2]], wait=5.0)
    assert time.monotonic() - began < 4.0


def test_it_waits_for_those_on_their_way_but_not_for_long():
    began = time.monotonic()
    answers, _ = run(Work(), [[2]], wait=0.2, coming=lambda: 1)
    assert answers == [[4]]
    assert 0.2 <= time.monotonic() - began < 5.0
    coming = [2]
    work, answers = Work(), []
    batcher = Batcher("test", work, wait=20.0, coming=lambda: coming[0])

    async def ask():
        first = asyncio.ensure_future(batcher.ask([2]))
        await asyncio.sleep(0.05)
        coming[0] = 0
        answers.append(await asyncio.gather(first, batcher.ask([4])))

    asyncio.run(ask())
    batcher.close()
    assert (answers, work.calls) == ([[[4], [8]]], [[[2], [4]]])


def test_work_that_fails_fails_for_those_who_asked():
    def broken(asked):
        raise RuntimeError("broken")

    answers, _ = run(broken, [[1], [2]])
    assert [str(one) for one in answers] == ["broken"] * 2


def test_those_who_have_gone_are_no_trouble():
    work = Work()
    work.go.clear()
    batcher = Batcher("test", work)

    async def ask():
        gone = asyncio.ensure_future(batcher.ask([2]))
        await asyncio.sleep(0.05)
        gone.cancel()
        stays = asyncio.ensure_future(batcher.ask([4]))
        await asyncio.sleep(0)
        work.go.set()
        return await stays

    assert asyncio.run(ask()) == [8]
    batcher.close()
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(batcher.ask([1]))


def count(client, name):
    text = client._connection.ask_bytes("GET", "/metrics").decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])


def test_a_server_scans_and_commits_for_many_at_once(folder, start, digits):
    X = digits[0].astype(np.float32)
    with ilhash.Client(start(folder).address) as client:

        def work(number):
            for turn in range(6):
                client.search_vectors(X[number : number + 1], 3)
                client.add(X[number : number + 1], [10_000 + 100 * number + turn])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(client) == 1797 + 96
        assert count(client, "ilhash_items") == 1797 + 96
        assert count(client, "ilhash_batch_requests_sum") == 96
        assert count(client, "ilhash_batch_requests_count") < 96
        assert count(client, "ilhash_commit_changes_sum") == 96
        assert count(client, "ilhash_commit_changes_count") < 60
        assert (
            count(client, 'ilhash_requests_total{method="POST",route="/v1/items",status="201"}'.replace("{", r"\{"))
            == 96
        )


def test_without_batching_every_search_is_a_scan(folder, start):
    with ilhash.Client(start(folder, batching=False).address) as client:
        for _ in range(3):
            client.search_ids([1], 2)
        assert count(client, "ilhash_batch_vectors_count") == 3
