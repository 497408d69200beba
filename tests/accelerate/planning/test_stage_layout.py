"""Where the stages of a picture stand."""

from __future__ import annotations

from itertools import combinations

from kquery_spark.accelerate.stage_layout import Box, Layout, Spot


def overlap(one: Spot, other: Spot) -> bool:
    across = one.x < other.x + other.width and other.x < one.x + one.width
    return across and one.y < other.y + other.height and other.y < one.y + one.height


def left_deep(joins: int) -> list[Box]:
    """Scans ``s0`` ... and joins ``j1`` ..., each of the join before it and a scan."""
    boxes = [Box("s0", 300, 80)]
    for i in range(1, joins + 1):
        boxes.append(Box(f"s{i}", 300 + 10 * i, 60 + i))
        boxes.append(Box(f"j{i}", 340, 100, (f"j{i - 1}" if i > 1 else "s0", f"s{i}")))
    return boxes


def test_fifteen_stages_stand_apart_two_in_a_row() -> None:
    layout = Layout(left_deep(7))
    assert len(layout.boxes) == 15
    spots = list(layout.spots.values())
    assert not any(overlap(a, b) for a, b in combinations(spots, 2))
    rows = [spot.y + spot.height for spot in spots]
    assert max(map(rows.count, rows)) == 2
    width, height = layout.size
    assert width < 800
    assert height == max(spot.y + spot.height for spot in spots)


def test_each_stage_is_above_those_that_read_it() -> None:
    layout = Layout(left_deep(4))
    for box in layout.boxes:
        for source in box.reads:
            assert layout.spots[source].y + layout.spots[source].height < layout.spots[box.key].y


def test_a_stage_that_is_read_twice_has_a_lane_beside_the_boxes_between() -> None:
    boxes = [
        Box("shared", 200, 50),
        Box("near", 200, 50, ("shared",)),
        Box("middle", 200, 50, ("near",)),
        Box("last", 200, 50, ("middle", "shared")),
    ]
    layout = Layout(boxes)
    route = layout.route("shared", "last")
    assert len(route) == 6
    assert route[0][1] == layout.spots["shared"].y + 50
    assert route[-1][1] == layout.spots["last"].y
    between = [layout.spots["near"], layout.spots["middle"]]
    for x, _ in route[1:-1]:
        assert not any(spot.x < x < spot.x + spot.width for spot in between)
    assert len(layout.route("shared", "near")) == 2


def test_nothing_has_no_size() -> None:
    assert Layout([]).size == (0.0, 0.0)
