"""The back-off between restarts, on a clock of its own."""

from host_bridge.restart import CrashHistory, RestartPolicy


def test_delays_double_up_to_the_longest() -> None:
    history = CrashHistory(RestartPolicy(max_crashes=100))
    delays = [history.next_delay(1.0, now=float(second)) for second in range(9)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_stable_run_starts_the_count_anew() -> None:
    history = CrashHistory(RestartPolicy())
    assert [history.next_delay(0.0, now=0.0), history.next_delay(0.0, now=1.0)] == [0.5, 1.0]
    assert history.next_delay(60.0, now=62.0) == 0.5


def test_it_gives_up_after_too_many_crashes_in_the_window() -> None:
    history = CrashHistory(RestartPolicy(max_crashes=2, window=10.0))
    assert [history.next_delay(0.0, now=now) for now in (0.0, 1.0, 2.0)] == [0.5, 1.0, None]


def test_crashes_outside_the_window_do_not_count() -> None:
    history = CrashHistory(RestartPolicy(max_crashes=2, window=10.0))
    assert None not in [history.next_delay(0.0, now=now) for now in (0.0, 9.0, 18.0, 27.0)]


def test_a_long_row_of_crashes_does_not_overflow() -> None:
    history = CrashHistory(RestartPolicy(max_crashes=10**6, window=1.0))
    assert [history.next_delay(0.0, now=float(second)) for second in range(2000)][-1] == 30.0
