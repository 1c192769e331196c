"""Limits of time: what takes too long is interrupted, by one thread for all, and nothing else is."""

import threading
import time

from dpsql.postprocess.time_limit import within


def limits() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "dpsql-limits"]


def test_what_takes_too_long_is_interrupted_and_nothing_else():
    stopped, others = threading.Event(), threading.Event()
    with within(60, others.set), within(0.05, stopped.set):
        assert stopped.wait(30)
    with within(0.01, others.set):
        pass
    time.sleep(0.05)
    with within(0.03, others.set), within(60, others.set):
        pass
    time.sleep(0.1)
    assert not others.is_set()
    assert len(limits()) == 1, "one thread sees to all of them"


def test_many_at_once_are_each_stopped_at_their_time():
    stopped: list[float] = []
    ended = threading.Barrier(9)

    def one(seconds: float) -> None:
        mine = threading.Event()
        with within(seconds, mine.set):
            assert mine.wait(30)
        stopped.append(seconds)
        ended.wait(30)

    threads = [threading.Thread(target=one, args=(0.02 * number,)) for number in range(1, 9)]
    for each in threads:
        each.start()
    ended.wait(30)
    for each in threads:
        each.join()
    assert sorted(stopped) == [0.02 * number for number in range(1, 9)]


def test_an_interrupt_that_fails_is_not_the_last():
    def fail() -> None:
        failed.set()
        raise RuntimeError

    failed, stopped = threading.Event(), threading.Event()
    with within(0.01, fail):
        assert failed.wait(30)
    with within(0.01, stopped.set):
        assert stopped.wait(30)
    assert len(limits()) == 1
