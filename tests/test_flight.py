"""pipeline.flight: the frames of a stream that are on their way to be written back."""

import pytest

from pipeline import flight
from pipeline.events import Origin, Ping
from pipeline.flight import OVERHEAD, Flight


def read(flight: Flight, *numbers: int, size: int = 0) -> list[Origin]:
    """One read of frames with these numbers."""
    frames = [Origin(b"", raw=b"x" * size, number=number, made=(Ping(),)) for number in numbers]
    flight.read().extend(frames)
    return frames


def numbers(frames: list[Origin]) -> list[int]:
    return [frame.number for frame in frames]


def test_frames_that_never_arrive_are_left_out_in_order_and_once() -> None:
    flight = Flight()
    read(flight, 0, 1)
    read(flight, 2, 3, 4)
    flight.due = 1
    assert numbers(flight.left_out(4)) == [1, 2, 3]
    assert flight.left_out(4) == []
    assert numbers(flight.left_out()) == [4]


def test_those_that_were_given_up_are_not_kept() -> None:
    flight = Flight()
    one, two = read(flight, 0, 1)
    one.made = two.made = ()  # type: ignore[misc]  # given up
    read(flight, 2)
    assert (flight._frames, flight._size) == (None, 0)
    read(flight, 3)
    flight.due = 3
    read(flight)
    assert numbers(flight.left_out()) == [3]
    assert flight._size == 0


def test_the_oldest_are_forgotten_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "MOST", 3 * (OVERHEAD + 10))
    many = Flight()
    for number in range(6):
        read(many, number, size=10)
    assert many.forgotten == 2
    assert numbers(many.left_out()) == [2, 3, 4, 5]
