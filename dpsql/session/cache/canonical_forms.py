"""Canonical forms of all parts of a question: fixed tags and words for classes and fields that may be renamed.

After renaming a class or field, rename it here, to the right of its tag or word. Add a new field that distinguishes
questions to its form; until then, it is written under its own name (`session.cache.canonical_text`). Tags and words are
in the keys of existing ledgers: changing one means that every answer of that kind is paid for again.
`tests/core/ledger/test_keys.py` checks this with stored keys.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from dpsql.core.cost import Cost
from dpsql.core.exact import (
    AllUnits,
    CellPart,
    CountDistinct,
    CountRows,
    CountUnits,
    Edges,
    ExactPlan,
    GridCounts,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    LeadingDigits,
    UnitMean,
    UnitTotal,
    UnitWeights,
)
from dpsql.core.loss import Allowance
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, RoundedGaussian, SharedLaplace, SplitLaplace
from dpsql.core.mechanisms.quantile_runs import RoundNumbers
from dpsql.core.mechanisms.quantiles import Tree
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.core.unit import ContributionBound, Neighbours
from dpsql.plan.aggregates import AGGREGATES, Aggregation
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.constants import ConstantTable
from dpsql.plan.expressions import Call, Column, Function, Literal
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Branch, Filter, Join, Mark, PerUnit, RowLimit, Scan, Union, Windows
from dpsql.plan.query import Aggregate, CorrelatedKey, GroupKey, ReleasedKey
from dpsql.plan.windows import WINDOWS, Frame, WindowCall, WindowFunction, WindowOrder
from dpsql.release.bounds.auto_bounds import Search
from dpsql.release.bounds.candidates import Intervals
from dpsql.release.bounds.points import Points, RoundPoints
from dpsql.release.choices import Draw
from dpsql.release.parts import ChosenPoint, Coordinate, Estimate, Moments
from dpsql.schema.columns import CellFormat, ColumnSchema, TableSchema, Type
from dpsql.schema.intervals import Interval
from dpsql.schema.units import Limits, Lookup, Unit, WrittenUnit
from dpsql.session.cache.canonical_text import Form, NoCanonicalForm, form


def _name_of(function: Function) -> str:
    """Return the function's name, which determines its kernel: names are unique in the language. Raises NoCanonicalForm
    for a function that is not the language's function of that name."""
    if FUNCTIONS.get(function.name) is not function:
        raise NoCanonicalForm(f"the language has another function {function.name}, or none")
    return function.name


def _tag_of(aggregate: AggregateFunction) -> str:
    """Return the tag of an aggregate function. Raises NoCanonicalForm for one that is not the language's function of
    that name."""
    if AGGREGATES.get(aggregate.name) is not aggregate:
        raise NoCanonicalForm(f"the language has another aggregate {aggregate.name}, or none")
    return aggregate.tag


def _window_tag(function: WindowFunction) -> str:
    """Return the tag of a window function. Raises NoCanonicalForm for one that is not the language's function of that
    name."""
    if WINDOWS.get(function.name) is not function:
        raise NoCanonicalForm(f"the language has another window function {function.name}, or none")
    return function.tag


_TABLE_WORDS = (
    *("name", "columns", "unit-said=unit_word", "unit", "limits", "public", "unique", "max-matches=max_matches"),
    *("rows", "partition", "version"),
)
_COLUMN = form(
    "column of a table",
    *("name", "type", "nullable", "bounds", "keys", "storage", "auto", "cells=cell_format", "zone"),
    later={"cells": None, "zone": None},
    apart=["wide", "nearest"],  # both follow from the others
)


def _type_of_column(column: ColumnSchema) -> Type:
    """Return the column's type. Columns of Python objects were text before they needed a declared type, without which
    no query reads them."""
    return Type.TEXT if column.type is Type.OBJECT else column.type


_TABLES: dict[type, Form] = {
    TableSchema: form(
        "table", *_TABLE_WORDS, apart=["people", "can_drop_rows", "rows_are_units"]
    ),  # the noise determines the latter
    ConstantTable: form(
        "table of constants", *_TABLE_WORDS, apart=["cells", "people", "can_drop_rows", "rows_are_units"]
    ),  # both are part of `version`
    ColumnSchema: replace(_COLUMN, words={**_COLUMN.words, "type": _type_of_column}),
    CellFormat: form("format of cells", "format", "decimal", "thousands", "true", "false", "null", "encoding"),
    WrittenUnit: form("unit as said", "column", "table", "key", "own"),
    Unit: form("unit", "column", "steps", apart=["owner"]),
    Lookup: form("look-up", "table", "key", "column"),
    Limits: form("limits", "rows", "groups", "per-group=per_group"),
    Interval: form("interval", "lower", "upper"),
}
_EXPRESSIONS: dict[type, Form] = {  # facts about a column's values follow from its table and the plan
    Column: form("column", "name", "type", "table", apart=["fact", "shown"]),
    Literal: form("constant", "value", "type"),
    Call: form("call", "function", "args", "type", apart=["held", "size", "branches", "_hash"]),
    Function: Form("function", {"name": _name_of}, frozenset(["name"]), enough=True),
}
_NODES: dict[type, Form] = {
    Scan: form("scan", "table", "name", apart=["shown"]),
    Filter: form("filter", "input", "predicate"),
    Join: form("join", "left", "right", "keys", "outer", "matches", "present"),
    Mark: form("mark", "input", "inner", "keys", "column", "condition", "of-list=of_list"),
    Branch: form("branch", "input", "outputs"),
    Union: form("union", "branches", "columns", "alternatives", later={"alternatives": False}),
    PerUnit: form("per unit", "input", "keys", "aggregations", "columns", "alone"),
    Windows: form("windows", "input", "calls", "columns", "ties"),
    RowLimit: form("row limit", "input", "most", "compared"),
    WindowCall: form(
        "window",
        *("function", "argument", "partition", "order", "frame", "number", "default", "ignore-nulls=ignore_nulls"),
    ),
    WindowFunction: Form("window function", {}, frozenset(), enough=True, name=_window_tag),
    WindowOrder: form("window order", "expression=expr", "descending", "nulls-first=nulls_first"),
    Frame: form("frame", "kind", "start", "end"),
    Aggregate: form("aggregate", "input", "keys", "aggregations", "sets", "apart", later={"apart": False}),
    Aggregation: form(
        "aggregation",
        *("kind", "argument", "epsilon", "per-unit=per_unit", "second", "at", "of-units=of_units", "values"),
        apart=["span"],
    ),
    AggregateFunction: Form("aggregate function", {}, frozenset(), enough=True, name=_tag_of),
    GroupKey: form(
        "key",
        *("expression=expr", "values", "listed", "shown", "together"),
        apart=["span"],
        later={"shown": None, "together": None},
    ),
    CorrelatedKey: form("together", "number", "places"),
    ReleasedKey: form("shown before", "source", "expression=expr", "present"),
}
_PARTS: dict[type, Form] = {
    ExactPlan: form("exact", "source", "keys", "every-cell=every_cell", "parts", "limits", "groups", "grids"),
    ContributionBound: form("contribution", "rows", "groups", "per-group=per_group"),
    CountRows: form("count of rows", "present"),
    CountDistinct: form("count of values", "value"),
    CountUnits: form("count of units", "present"),
    UnitWeights: form("weights of units", "scale"),
    LatticeSum: form("sum", "value", "lower", "upper", "origin", "steps=steps_per_unit", "least", "most", "whole"),
    LatticeProduct: form("sum of products", "first", "second", "most", "whole"),
    LatticeShare: form("sum of shares", "first", "second", "degrees", "index"),
    UnitTotal: form("sum of totals", "of", "least", "most"),
    UnitMean: form("sum of averages", "of", "least", "most"),
    CellPart: form("in a cell", "of", "alternatives", "number"),
    AllUnits: form("count of all units"),
    GridCounts: form("counts on a grid", "of", "points"),
    Edges: form("edges", "value", "edges"),
    LeadingDigits: form("leading digits", "value", "digits"),
}
_NOISE: dict[type, Form] = {  # the calibration target of noise is in the cost
    CubeLaplace: form("cube", "scale=exact_scale", "dimension", apart=["epsilon"]),
    SplitLaplace: form("laplace", "scale=exact_scale", "dimension", apart=["epsilon"]),
    SharedLaplace: form("laplace of shares", "scale=exact_scale", "dimension", apart=["epsilon"]),
    ClassLaplace: form("cubes of classes", "scale=exact_scale", "classes", apart=["epsilon"]),
    GroupVectorLaplace: form("cube of all groups", "scale=exact_scale", "dimension", "kinds", apart=["epsilon"]),
    DiscreteGaussian: form("gaussian", "variance", "dimension", apart=["guarantee", "rho"]),
    RoundedGaussian: form("rounded gaussian", "variance", "dimension", apart=["guarantee", "rho"]),
    Staircase: form("staircase", "scale=exact_scale", "width", "inner", apart=["epsilon"]),
    TruncatedGeometric: form("truncated geometric", "epsilon", "delta", "groups", "least"),
    Cost: form("cost", "epsilon", "delta", "rho", "hidden"),
    Allowance: form("allowed", "epsilon", "delta", "rho", apart=["concentrated", "bounded_range"]),
}
_MEASURED: dict[type, Form] = {
    Coordinate: form(
        "coordinate",
        "terms",
        "unit",
        "undivided",
        "noisy",
        apart=["name"],
    ),
    Estimate: form(
        "estimate",
        *("kind", "sum", "count", "centre", "range", "whole", "moments", "chosen"),
        apart=["unrounded"],  # it follows from the plan
    ),
    Moments: form(
        "moments",
        *("half", "square", "product", "sum", "other-square=other_square", "centre", "other-half=other_half"),
    ),
    ChosenPoint: form(
        "chosen", "place", "many", "kind", "values", "origin", "step", "most", "listed", "points", "among"
    ),
    Points: form("points", "lower", "upper", "most", "whole"),
    RoundPoints: form("round points", "lower", "upper", "kind", "step", "digits"),
    RoundNumbers: form("round numbers", "least", "most", "strides", "decades"),
    Draw: form(
        "draw",
        *("kind", "grid", "points", "places", "wanted", "epsilon", "rows", "bounded", "one-group=one_group"),
        *("mechanism", "cost", "noise", "among", "tree"),
        apart=["event", "chosen_by"],
        later={"tree": None},
    ),
    Tree: form("tree", "place", "part", "below", "above"),
    Intervals: form("intervals", "whole", "outer", "digits"),
    Search: form(
        "search",
        *("column", "intervals", "grid", "epsilon", "rows", "bounded", "mechanism", "worth", "cost"),
        apart=["chosen_by"],
    ),
}

FORMS: dict[type, Form] = {**_TABLES, **_EXPRESSIONS, **_NODES, **_PARTS, **_NOISE, **_MEASURED}

NAMES: dict[Enum, str] = {
    Type.INTEGER: "integer",
    Type.REAL: "real",
    Type.BOOLEAN: "boolean",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
    Type.OTHER: "other",
    Type.OBJECT: "object",
    Neighbours.UNBOUNDED: "unbounded",
    Neighbours.BOUNDED: "bounded",
}
