"""A row comes to the same bits wherever it lies, wherever it stands and whatever stands beside it (row_local.py).

All functions of the language, over columns in every layout, in blocks of 1 to 70 rows at any place, beside rows that
are NULL, infinite or outside a function's domain: every cell has the bits that it has alone. Only some processors
compute otherwise for other layouts, so a watch on the kernels sees on every one how cells reach them.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.evaluation import evaluator
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import DTYPES, Call, Column, Fact, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.row_local import elementary, laid_out
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, resolve
from dpsql.sources.frames import stored_columns
from tests.executors.pandas.layouts import LAYOUTS, NULLABLE, NUMPY, can_lie, frame_of, is_laid_out, lie, watched
from tests.plan.records import Use, vector
from tests.plan.samples import FULL, NARROW, SAMPLES, randoms
from tests.plan.test_function_records import OF_CONSTANTS, USES

SEED = 20_260_737
LONGEST = 70
GOOD, BAD = 100, 60
FEW = (1, 2, 3, 8, 9, 31, 64, 65, 70)
LONG = ("contiguous", "stride -1", "column of a block", "nullable")
ELEMENTARY = ("exp", "ln", "log10", "log2", "cbrt", "power", "log_base")


# Rows: those at the beginning are such that a function is defined, those after them are of every kind.


@cache
def pool(kind: Type, *, narrow: bool, null: bool) -> tuple[Any, ...]:
    held = NARROW.get(kind) if narrow else None
    found = [each for each in (*SAMPLES[kind], *randoms(kind)) if each is None or held is None or each in held]
    return tuple(each for each in found if null or each is not None)


def cells_for(kind: Type, draw: random.Random, *, narrow: bool, null: bool) -> list[Any]:
    good = list(pool(kind, narrow=kind in NARROW, null=False))
    return [*draw.choices(good, k=GOOD), *draw.choices(pool(kind, narrow=narrow, null=null), k=BAD)]


class Case:
    """A function over some columns and constants, and what it makes of each row alone."""

    def __init__(self, expr: Call, cells: dict[str, list[Any]]) -> None:
        self.expr = expr
        self.cells = cells
        self.kinds = {each.name: each.type for each in expr.args if isinstance(each, Column)}
        self.rows = len(next(iter(cells.values())))
        alone = [self._alone(place) for place in range(self.rows)]
        self.bits = [bits(each) for each in alone]

    def _alone(self, place: int) -> Vector:
        read = {name: vector(kind, [self.cells[name][place]]) for name, kind in self.kinds.items()}
        with np.errstate(all="ignore"):
            return evaluate(self.expr, lambda leaf: read[leaf.name], 1)

    def lies(self, layout: str) -> bool:
        return all(can_lie(layout, kind, self.cells[name]) for name, kind in self.kinds.items())

    def check(self, layout: str, windows: Sequence[tuple[int, int]]) -> None:
        frame = frame_of({name: lie(layout, kind, self.cells[name]) for name, kind in self.kinds.items()})
        types = {name: str(kind) for name, kind in self.kinds.items()}
        store = ColumnStore(frame, resolve("t", stored_columns(frame), Declaration.of(types=types)))
        with np.errstate(all="ignore"):
            read = evaluator(self.expr, store)
            for start, stop in windows:
                found = read(start, stop)
                assert found.values.dtype == DTYPES[self.expr.type]
                assert list(zip_bits(found)) == self.bits[start:stop], f"{self.expr}, {layout}, rows {start}..{stop}"


def bits(one: Vector) -> Any:
    return next(zip_bits(one))


def zip_bits(found: Vector) -> Iterator[Any]:
    """The bits of every cell, None for NULL."""
    whole = found.values.view(np.int64) if found.values.dtype == np.float64 else found.values
    return (each if valid else None for each, valid in zip(whole.tolist(), found.where_valid().tolist(), strict=True))


def cases(use: Use, *, every: bool) -> Iterator[Case]:
    """Over columns of any values and of a narrow range, with NULLs and without; with constants, before and after."""
    draw = random.Random(f"{SEED} {use}")
    for narrow in (False, True):
        for null in (True, False) if every else (not narrow,):
            cells = {f"a{i}": cells_for(kind, draw, narrow=narrow, null=null) for i, kind in enumerate(use.kinds)}
            columns = [
                Column(f"a{i}", kind, Fact((NARROW if narrow else FULL).get(kind, FULL[kind]), nullable=null))
                for i, kind in enumerate(use.kinds)
            ]
            constants = [Literal(draw.choice(pool(kind, narrow=True, null=False)), kind) for kind in use.kinds]
            if use.function.name in ("to_decimal", "text_to_decimal"):
                constants[1:] = [Literal(12, Type.INTEGER), Literal(draw.choice((0, 2, 4)), Type.INTEGER)]
            makes = [] if use.function.name in OF_CONSTANTS and len(use.kinds) > 1 else [columns]
            if len(use.kinds) > 1:
                makes.append([columns[0], *constants[1:]])
            if len(use.kinds) > 1 and use.function.name not in OF_CONSTANTS:
                makes.append([*constants[:-1], columns[-1]])
            for args in makes:
                expr = call(use.function, *args)
                if expr is not None and any(isinstance(arg, Column) for arg in args):
                    yield Case(expr, {each.name: cells[each.name] for each in args if isinstance(each, Column)})


def windows_of(rows: int, lengths: Sequence[int], draw: random.Random) -> list[tuple[int, int]]:
    """One block of each length, somewhere: so that each place in a block is met at each length."""
    starts = [(length, draw.randrange(rows - length + 1)) for length in lengths]
    return [(start, start + length) for length, start in starts]


def check_use(use: Use, *, every_case: bool, every_length: bool = False) -> None:
    draw = random.Random(f"{SEED} {use}")
    in_floats = Type.REAL in use.kinds or use.function.name in ELEMENTARY
    done = set()
    for case in cases(use, every=every_case):
        floats = in_floats or case.expr.type is Type.REAL
        for layout in LAYOUTS:
            if case.lies(layout):
                lengths = range(1, LONGEST + 1) if every_length or (floats and layout in LONG) else FEW
                case.check(layout, windows_of(case.rows, lengths, draw))
                done.add(layout)
    assert len(done) > 3 or Type.TEXT in use.kinds


@pytest.mark.thinned(3)
@pytest.mark.parametrize("use", [use for use in USES if use.kinds], ids=str)
def test_every_function_over_every_layout(use: Use):
    check_use(use, every_case=False)


@pytest.mark.slow
@pytest.mark.parametrize("use", [use for use in USES if use.kinds], ids=str)
def test_every_function_over_every_layout_at_every_length(use: Use):
    check_use(use, every_case=True, every_length=True)


OF_FLOATS = [use for use in USES if use.function.name in ELEMENTARY]


@pytest.mark.slow
@pytest.mark.parametrize("use", OF_FLOATS, ids=str)
def test_functions_that_are_not_rounded_correctly_at_every_place(use: Use):
    """Every block of up to 70 rows of columns that are read in place, and many of others."""
    draw = random.Random(SEED)
    for case in cases(use, every=False):
        for layout in LAYOUTS:
            if case.lies(layout):
                starts = [(n, i) for n in range(1, LONGEST + 1) for i in range(case.rows - n + 1)]
                chosen = starts if layout == "contiguous" else draw.sample(starts, 300)
                case.check(layout, [(i, i + n) for n, i in chosen])


# What the proof takes from NumPy


UFUNCS = (np.exp, np.log, np.log2, np.log10, np.cbrt, np.power)


def memory(size: int, places: int) -> np.ndarray:
    """Room for so many floats, that begins so many floats behind a multiple of 64 bytes."""
    held = np.empty(8 * (size + 16), dtype=np.uint8)
    first = -held.ctypes.data % 64 + 8 * places
    return held[first : first + 8 * size].view(np.float64)


@pytest.mark.parametrize("function", UFUNCS, ids=lambda each: each.__name__)
def test_numpy_computes_every_cell_of_contiguous_memory_alike(function: np.ufunc):
    """At every place of every length, at every place between two lines of the cache, beside any cells."""
    draw = random.Random(function.__name__)
    good = [27.0, 8.0, 1.0, 0.5, 2.0, 10.0, *(draw.uniform(1e-3, 700) for _ in range(60))]
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-310, -1e-310, 1e308, -27.0, -700.0, 750.0, -750.0, 1e22]
    pairs = [(each, draw.choice((*odd, 2.0, 0.5, 3.0, 1 / 3, -1.0))) for each in [*good, *odd] * 2]
    with np.errstate(all="ignore"):
        alone = {pair: _bits(function, [pair])[0] for pair in pairs}
        for length in range(1, LONGEST + 1):
            for places in range(8):
                chosen = draw.sample(pairs, length)
                assert _bits(function, chosen, places) == [alone[pair] for pair in chosen], (length, places)


def _bits(function: np.ufunc, pairs: Sequence[tuple[float, float]], places: int = 0) -> list[int]:
    operands = []
    for place in range(function.nin):
        operands.append(memory(len(pairs), (places + 3 * place) % 8))
        operands[-1][:] = [pair[place] for pair in pairs]
    found = function(*operands)
    return np.where(np.isnan(found), np.nan, found).view(np.int64).tolist()


@pytest.mark.parametrize("name", [*NUMPY, *NULLABLE])
@pytest.mark.parametrize("size", [0, 1, 2, 9])
def test_what_is_laid_out_has_the_stride_of_its_type(name: str, size: int):
    for kind, cells in {Type.REAL: [2.5, -0.0], Type.INTEGER: [7, -3], Type.BOOLEAN: [True, False]}.items():
        if not can_lie(name, kind, cells):
            continue
        own = lie(name, kind, (cells * 5)[:size]).to_numpy()
        found = laid_out(own)
        assert is_laid_out(found)
        assert found.dtype == own.dtype.newbyteorder("=")
        assert found.tolist() == own.tolist()
        assert laid_out(found) is found or not size


def test_a_repeated_cell_is_no_constant():
    """Only a constant of the text has the stride 0: a column of people's may not take its way through a kernel."""
    frame = frame_of({"x": pd.Series(np.broadcast_to(27.0, 9), copy=False), "y": pd.Series(np.arange(9.0), copy=False)})
    assert frame["x"].to_numpy().strides == (0,)
    store = ColumnStore(frame, resolve("t", stored_columns(frame), Declaration.of()))
    x, y = (Column(name, Type.REAL, Fact()) for name in "xy")
    with watched() as watch:
        for name in ("divide", "power", "round", "int_divide", "coalesce", "greatest"):
            expr = call(FUNCTIONS[name], y, x) or call(FUNCTIONS[name], y)
            assert expr is not None
            assert is_laid_out(evaluator(expr, store)(0, 9).values)
    assert not watch.wrong
    assert len(watch.calls) == 6


def test_elementary_functions_take_constants_laid_out():
    cell = np.broadcast_to(np.array([0.5]), 7)
    seen: list[tuple[int, ...]] = []
    elementary(lambda *operands: seen.extend(each.strides for each in operands) or operands[0], cell, cell)
    assert seen == [(8,), (8,)]


# What is not rounded correctly is called in one place


SIX = {"exp", "log", "log2", "log10", "cbrt", "power"}
MOVED_OR_COUNTED = """
all any append arange argmax argmin argsort array asarray ascontiguousarray bincount bitwise_and bitwise_or bitwise_xor
broadcast_to column_stack concatenate copyto count_nonzero cumsum delete diff divmod empty empty_like equal flatnonzero
frombuffer fromiter full full_like greater greater_equal invert isfinite isin isinf isnan isnat left_shift less
less_equal lexsort logical_and logical_not logical_or ndim nonzero not_equal ones ones_like packbits put ravel repeat
result_type right_shift searchsorted sort split stack take tile unique unpackbits where zeros zeros_like
"""
ROUNDED_CORRECTLY = """
abs add ceil copysign degrees divide floor fmod ldexp multiply negative nextafter radians rint sign signbit sqrt
subtract trunc
"""
BUT_FOR_THE_SIGN_OF_ZERO = "clip fmax fmin maximum minimum"
WORDS = """
bool_ complexfloating datetime64 datetime_data dtype errstate finfo float16 float32 float64 floating generic iinfo inf
int8 int16 int32 int64 integer longdouble nan ndarray newaxis number object_ sctypeDict signedinteger timedelta64 ufunc
uint8 uint16 uint32 uint64 unsignedinteger
"""
EXACT = {*MOVED_OR_COUNTED.split(), *ROUNDED_CORRECTLY.split(), *BUT_FOR_THE_SIGN_OF_ZERO.split(), *WORDS.split()}
"""What of NumPy may be used over rows as it is: it gives the same bits on every way through the library. (numpy.degrees
and numpy.radians are one product; numpy.cumsum and the method `sum` are for integers here.)"""
REDUCTIONS = {"mean", "std", "var", "prod", "cumprod", "dot", "average", "median"}
ROOM = Path(dpsql.__file__).parent


def inexact(source: str) -> set[str]:
    """What a module uses that may depend on the way through the library."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            module = node.value.id if isinstance(node.value, ast.Name) else ""
            of_numpy = module in ("np", "numpy")
            if node.attr not in EXACT if of_numpy else node.attr in REDUCTIONS and module != "math":
                found.add(node.attr)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add("@")
    return found


def test_only_one_module_calls_what_is_not_rounded_correctly():
    for path in [path for room in ("executors", "plan", "sql") for path in (ROOM / room).rglob("*.py")]:
        used = inexact(path.read_text(encoding="utf-8"))
        assert used == (SIX if path.name == "real_functions.py" else set()), (
            f"{path.name}: exact and listed, or elementary?"
        )
    source = (ROOM / "plan" / "functions" / "real_functions.py").read_text(encoding="utf-8")
    for name in SIX:
        handed = re.findall(rf"(?:elementary\(|_cells\()np\.{name}\b", source)
        assert len(handed) == len(re.findall(rf"np\.{name}\b", source)) > 0


@pytest.mark.parametrize(
    "source", ["np.sin(x)", "x.mean()", "a @ b", "numpy.linalg.norm(x)", "np.add.reduce(x) + np.dot(x, x)"]
)
def test_what_may_depend_on_the_way_is_found(source: str):
    assert inexact(source)
