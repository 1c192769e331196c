"""Values of every type: what is special, and what is random; and what is declared of them."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY, read_date, read_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN, EVERYTHING, Interval

LARGEST = 2**62
"""Results of arithmetic are integers up to it; cells are all those of 64 bits."""
KINDS = (Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP)
STORED = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def day(text: str) -> int:
    number = read_date(text)
    assert number is not None
    return number


def moment(text: str) -> int:
    number = read_timestamp(text)
    assert number is not None
    return number


# The first few of each are taken where the product of all would be too much.
SAMPLES: dict[Type, list[Any]] = {
    Type.INTEGER: [
        None, 0, 7, -3, 2, 1, LARGEST, -1, -LARGEST, 12, 100, 5, -10, 128, -129, 2**31, 4_500, 2**53 + 1, 1 - 2**53,
        -123_456_789, 10**18, 5 * 10**17 - 1, 65_536, 2**63 - 1, -(2**63), 1 - 2**63, LARGEST + 1, -LARGEST - 1,
        5 * 10**18,
    ],
    Type.REAL: [
        None, 0.0, 2.5, -7.25, 1.0, math.inf, -0.5, 1e300, 0.1, -math.inf, 3.0, -2.0, 127.5, 5e-324, -1e-300, 1e16,
        2.0**53, -1e308, 0.49999999999999994, 1e-5, 123_456.789, -0.0, 3.4028235677973366e38, 1e17 / 3,
    ],
    Type.BOOLEAN: [None, True, False],
    Type.TEXT: [
        None, "", "a", " 1.5 ", "héllo", "-3", "2020-02-29", "1e3", "true", "日本 😀", "A%b_c\\", "it's", "Straße ß",
        "2020-01-05 10:11:12.5", "-128", "127", "1-1-1", "9999-12-31 23:59:59.9999999", "aa", "NO", "inf", "\t12\n",
        "127.5", "99999999999999999999", "x y,z", "İi", "1.2.3", f"{LARGEST}", f"-{LARGEST}", f"{LARGEST + 1}",
        f"{2**63 - 1}", f"{-(2**63)}", f"{2**63}", f"{-(2**63) - 1}",
    ],
    Type.DATE: [
        None, day("2020-02-29"), day("1970-01-01"), day("0001-01-01"), day("9999-12-31"), day("2021-01-03"),
        day("1999-12-31"), day("1969-07-20"), day("2000-03-01"), day("0999-05-31"), day("2024-12-30"),
    ],
    Type.TIMESTAMP: [
        None, moment("2020-02-29 23:59:59.999999"), moment("1970-01-01"), moment("0001-01-01"),
        moment("9999-12-31 23:59:59.999999"), moment("2021-01-03 12:00"), moment("1999-12-31 00:00:00.5"),
        moment("1969-07-20 20:17:40"), moment("2000-03-01 01:02:03.000004"), moment("2024-12-30 06:30"),
    ],
}  # fmt: skip
FULL: dict[Type, Interval] = {
    Type.INTEGER: EVERYTHING,
    Type.REAL: EVERYTHING,
    Type.BOOLEAN: BOOLEAN,
    Type.TEXT: EVERYTHING,
    Type.DATE: DAYS,
    Type.TIMESTAMP: MICROSECONDS,
}
"""Where values lie of which nothing is declared."""
NARROW: dict[Type, Interval] = {
    Type.INTEGER: Interval(-10, 128),
    Type.REAL: Interval(-7.25, 127.5),
    Type.DATE: Interval(day("1969-07-20"), day("2024-12-30")),
    Type.TIMESTAMP: Interval(moment("1969-07-20"), moment("2024-12-31")),
}
POSITIVE: dict[Type, Interval] = {
    Type.INTEGER: Interval(1, 12),
    Type.REAL: Interval(0.1, 3.0),
    Type.DATE: Interval(day("2000-03-01"), day("2021-01-03")),
    Type.TIMESTAMP: Interval(moment("1999-12-31"), moment("2021-01-03 12:00")),
}


RANDOMS = 400


@cache
def randoms(kind: Type) -> tuple[Any, ...]:
    """Values from everywhere, most of them of everyday size."""
    draw = random.Random(kind)
    if kind is Type.BOOLEAN:
        return (True, False)
    if kind is Type.TEXT:
        return tuple(dict.fromkeys(random_text(draw) for _ in range(RANDOMS)))
    if kind is Type.INTEGER:
        near = {draw.randint(-(10**k), 10**k) for k in range(1, 19) for _ in range(RANDOMS // 18)}
        return tuple(near | {draw.randint(-(2**63), 2**63 - 1) for _ in range(RANDOMS // 18)})
    if kind is Type.REAL:
        sizes = [10.0 ** draw.uniform(-3, 6) for _ in range(RANDOMS)] + [
            10.0 ** draw.uniform(-320, 308) for _ in "x" * 60
        ]
        found = {draw.choice((-1, 1)) * size for size in sizes}
        return tuple({*found, *(round(each, draw.randint(0, 4)) for each in found), *HALVES})
    limit = FULL[kind]
    width = 1 if kind is Type.DATE else MICROSECONDS_A_DAY
    near = [draw.randint(-20_000 * width, 40_000 * width) for _ in range(RANDOMS // 2)]
    far = [draw.randint(int(limit.lower), int(limit.upper)) for _ in range(RANDOMS // 2)]
    return tuple({*near, *far})


HALVES = [each / 2 for each in range(-520, 520, 7)]


def random_text(draw: random.Random) -> str:
    kind = draw.randrange(6)
    if kind == 0:
        return "".join(draw.choice("abAB zé日😀%_\\'") for _ in range(draw.randint(0, 8)))
    if kind == 1:
        return f"{draw.randint(0, 3000)}-{draw.randint(0, 14)}-{draw.randint(0, 33)}"
    if kind == 2:
        return (
            f"20{draw.randint(10, 30)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}{draw.choice(' T')}"
            + ":".join(str(draw.randint(0, 62)) for _ in range(draw.randint(1, 3)))
            + draw.choice(("", ".5", ".123456789", "Z", "."))
        )
    digits = "".join(draw.choice("0123456789") for _ in range(draw.randint(0, draw.choice((3, 8, 25)))))
    point_at = draw.choice((None, draw.randint(0, len(digits))))
    number = digits if point_at is None else f"{digits[:point_at]}.{digits[point_at:]}"
    exponent = draw.choice(("", "", "e2", "E-3", "e+10", "e", "e400"))
    return draw.choice(("", " ")) + draw.choice(("", "-", "+")) + number + exponent + draw.choice(("", "\t", "x"))
