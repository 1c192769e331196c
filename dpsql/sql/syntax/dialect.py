"""DuckDB's SQL with GoogleSQL's words about privacy, as a dialect of sqlglot.

    SELECT WITH DIFFERENTIAL_PRIVACY [OPTIONS (epsilon = 1, ...)] ...   the SELECT's argument "privacy": a PrivacyClause
    AVG(age, contribution_bounds_per_group => (17, 90))                 Named(this=Avg, expressions=[Kwarg, ...])
    :name                                                               a Placeholder, also first in a SELECT list

All else is read and written as DuckDB's dialect does, with two exceptions that the `:` of a parameter asks for: prefix
aliases (`n: COUNT(*)`) are refused, and `$name` is a Parameter, so that a Placeholder with a name is always a `:name`.

The dialect of DuckDB itself must not write these trees: it would leave the clause out without a word.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from dpsql.sql.syntax.nodes import NamedArguments, PriorValue, PrivacyClause
from dpsql.sql.syntax.parser import PrivateParser


class PrivateGenerator(DuckDBGenerator):
    """DuckDB's generator, which writes the three additions too."""

    NAMED_PLACEHOLDER_TOKEN = ":"
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
        **DuckDBGenerator.TRANSFORMS,
        PrivacyClause: lambda self, node: self.privacyclause_sql(node),  # sqlglot finds only its own nodes by name
        NamedArguments: lambda self, node: self.named_sql(node),
        PriorValue: lambda _self, node: str(node.args["written"]),
        exp.PercentileCont: lambda self, node: self.percentile_sql(node, "CONT"),
        exp.PercentileDisc: lambda self, node: self.percentile_sql(node, "DISC"),
        exp.ApproxTopK: lambda self, node: self.function_fallback_sql(node),  # it is a text here, as APPROX_TOP_K(x, k)
    }

    def select_sql(self, expression: exp.Select) -> str:
        clause = expression.args.get("privacy")
        if clause is None:
            return super().select_sql(expression)
        expression.set("hint", clause)  # where it is written; what is written there depends on the node
        try:
            return super().select_sql(expression)
        finally:
            expression.set("hint", None)
            expression.set("privacy", clause)

    def privacyclause_sql(self, expression: PrivacyClause) -> str:
        options = self.expressions(expression, flat=True)
        return " WITH DIFFERENTIAL_PRIVACY" + (f" OPTIONS ({options})" if options else "")

    def named_sql(self, expression: NamedArguments) -> str:
        call = self.sql(expression.this, comment=False).removesuffix(")").rstrip()
        return f"{call}{'' if call.endswith('(') else ', '}{self.expressions(expression, flat=True)})"

    def withingroup_sql(self, expression: exp.WithinGroup) -> str:
        # DuckDB's own method moves the order into the call, where the language does not read it.
        return super(DuckDBGenerator, self).withingroup_sql(expression)

    def percentile_sql(self, expression: exp.Expr, kind: str) -> str:
        # One node for both names: PERCENTILE_ before WITHIN GROUP, QUANTILE_ with the quantile as an argument.
        parent = expression.parent.parent if isinstance(expression.parent, NamedArguments) else expression.parent
        word = "PERCENTILE" if isinstance(parent, exp.WithinGroup) else "QUANTILE"
        return self.func(f"{word}_{kind}", expression.this, expression.args.get("expression"))


class PrivateTokenizer(DuckDB.Tokenizer):
    """DuckDB's words, and names in backticks too, as BigQuery, MySQL and Spark write them."""

    IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]


class PrivacyDialect(DuckDB):
    """The dialect of the language."""

    Tokenizer = PrivateTokenizer
    Parser = PrivateParser
    Generator = PrivateGenerator


# What sqlglot makes anew for each dialect from its own body, where DuckDB's has something in it.
PrivacyDialect.INVERSE_TIME_MAPPING = DuckDB.INVERSE_TIME_MAPPING
PrivacyDialect.INVERSE_TIME_TRIE = DuckDB.INVERSE_TIME_TRIE


def check_build(dialect: DuckDB) -> None:
    """Raises ImportError where sqlglot is the compiled build, whose classes cannot be extended."""
    try:
        dialect.parser()
    except TypeError:
        raise ImportError(
            "dpsql extends sqlglot's parser, which sqlglot's compiled build does not allow. "
            "Remove that build (pip uninstall sqlglotc); sqlglot works without it."
        ) from None


check_build(PrivacyDialect())
