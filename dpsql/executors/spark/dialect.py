"""Spark's SQL (see `dpsql.executors.sql.dialect.Dialect`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.executors.spark.cells import SOUND_TEXT
from dpsql.executors.spark.functions import template_of
from dpsql.executors.spark.literals import NAN, literal, type_name
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.plan.expressions import Call
from dpsql.schema.columns import Key, Type

LIMB = 27
"""Bits of a limb of a sum: 2^36 rows of limbs add up to less than 2^63."""
_MARK = "\0{}\0"
_MOST_LOOKED_THROUGH = 1_000
_CHUNK = 64
"""Edges are searched among the first ones of chunks, and then in one chunk."""


class SparkDialect:
    name = "spark"
    counts_first = False
    sound_text = SOUND_TEXT
    wide = "DECIMAL(38, 0)"

    def type_name(self, kind: Type) -> str:
        return type_name(kind)

    def literal(self, value: Key, kind: Type) -> str:
        return literal(value, kind)

    def call(self, call: Call, args: list[str]) -> str:
        """Return a call; integers have 64 bits, whatever Spark's function returns."""
        text = template_of(call).format(*args, args=", ".join(args), rest=", ".join(args[1:]))
        if call.type is Type.REAL:
            return f"NULLIF({text}, {NAN})"
        whole = call.type in (Type.INTEGER, Type.DATE, Type.TIMESTAMP)
        return f"CAST({text} AS BIGINT)" if whole else f"({text})"

    def mentions(self, call: Call) -> list[int]:
        marks = [_MARK.format(place) for place in range(len(call.args))]
        text = template_of(call).format(*marks, args=", ".join(marks), rest=", ".join(marks[1:]))
        return [text.count(mark) for mark in marks]

    def whole(self, text: str, kind: Type) -> str:
        return f"CAST({text} AS BIGINT)" if kind is Type.BOOLEAN else text

    def moment(self, text: str, kind: Type) -> str:  # noqa: ARG002 - times are numbers already
        return text

    def rounded(self, text: str) -> str:
        return f"CAST(rint({text}) AS BIGINT)"

    def total(self, text: str, most: int, where: str = "") -> str:
        """Sum limbs in 64 bits, combined once per group: sums of DECIMAL take several times as long."""
        limbs = -(-most.bit_length() // LIMB) if most else 1
        if limbs == 1:
            return f"CAST(SUM({text}){where} AS DECIMAL(38, 0))"
        parts = [f"(({text} >> {LIMB * place}) & {2**LIMB - 1})" for place in range(limbs - 1)]
        parts.append(f"({text} >> {LIMB * (limbs - 1)})")
        sums = [
            f"CAST(SUM({part}){where} AS DECIMAL(38, 0)) * CAST({2 ** (LIMB * place)} AS DECIMAL(38, 0))"
            for place, part in enumerate(parts)
        ]
        return f"({' + '.join(sums)})"

    def quotient(self, text: str, by: str) -> str:
        return f"{text} DIV {by}"

    def halves(self, total: str) -> tuple[str, str]:
        low = f"pmod({total}, CAST({2**32} AS DECIMAL(38, 0)))"
        return f"CAST(({total} - {low}) DIV {2**32} AS DOUBLE) * 4294967296e0", f"CAST({low} AS DOUBLE)"

    def ordered_sum(self, text: str) -> str:
        added = f"aggregate(array_sort(collect_list({text})), 0D, (total, each) -> total + each)"
        return f"CASE WHEN COUNT({text}) > 0 THEN {added} END"

    def windowed(self, function: str, args: Sequence[str], nulls: str) -> str:
        return f"{function}({', '.join(args)}){nulls}"

    def pair(self, number: str, value: str) -> str:
        return f"named_struct('number', {number}, 'value', {value})"

    def second_of(self, pair: str) -> str:
        return f"({pair}).value"

    def all_but(self, names: Sequence[str]) -> str:
        return f"* EXCEPT ({', '.join(names)})"

    def head(self, named: Mapping[str, str]) -> str:  # noqa: ARG002 - they are tables of the session by then
        return ""

    def edges_below(self, edges: Sequence[float], number: str) -> str:
        chunks = [edges[at : at + _CHUNK] for at in range(0, len(edges), _CHUNK)]
        firsts = _array([chunk[0] for chunk in chunks])
        of_chunks = f"size(filter({firsts}, each -> each < {number}))"
        listed = f"element_at(array({', '.join(map(_array, chunks))}), {of_chunks})"
        inside = f"({of_chunks} - 1) * {_CHUNK} + size(filter({listed}, each -> each < {number}))"
        return f"CASE WHEN {of_chunks} = 0 THEN 0 ELSE {inside} END"

    def place_in(self, values: Sequence[Key], kind: Type, value: str) -> str | None:
        """Search the list in place: joining it takes a separate job."""
        if not 0 < len(values) <= _MOST_LOOKED_THROUGH or not (kind is Type.TEXT or kind.discrete):
            return None
        listed = ", ".join(literal(each, kind) for each in values)
        return f"NULLIF(array_position(array({listed}), {value}), CAST(0 AS BIGINT)) - CAST(1 AS BIGINT)"

    def of_pass(self, unit: str) -> None:  # noqa: ARG002
        return None

    def greatest_below(self, rows: str, edges: str, value: str, edge: str) -> str:
        raise MissingFeature(f"list of edges beside {rows}, {edges}, {value}, {edge}")  # `edges_below` handles them

    def text_limbs(self, key: str, text: str) -> tuple[str, str]:
        """Read the last eight bytes of MD5 in reverse: reverse the digits, then swap the two of each byte."""
        digits = f"regexp_replace(reverse(substring(md5(concat('{key}', {text})), 17)), '(.)(.)', '$2$1')"
        number = f"CAST(conv(substring({digits}, 2), 16, 10) AS BIGINT)"
        return f"({number} & 1073741823)", f"({number} >> 30)"


def _array(edges: Sequence[float]) -> str:
    return f"array({', '.join(literal(float(each), Type.REAL) for each in edges)})"


SPARK_SQL = SparkDialect()
