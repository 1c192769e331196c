"""DuckDB's SQL with GoogleSQL's privacy keywords, as a dialect of sqlglot.

    SELECT WITH DIFFERENTIAL_PRIVACY [OPTIONS (epsilon = 1, ...)] ...   the SELECT's argument "privacy": a PrivacyClause
    AVG(age, contribution_bounds_per_group => (17, 90))                 Named(this=Avg, expressions=[Kwarg, ...])
    :name                                                               a Placeholder, also first in a SELECT list

Everything else is read and written like DuckDB's dialect, with two exceptions for the `:` of a parameter: prefix
aliases (`n: COUNT(*)`) are refused, and `$name` is a Parameter, so that a Placeholder with a name is always a `:name`.

Do not write these trees with DuckDB's own dialect: it would silently drop the clause.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from dpsql.sql.syntax.nodes import NamedArguments, PriorValue, PrivacyClause
from dpsql.sql.syntax.parser import PrivateParser

NEWEST_TESTED = (30, 30)
"""The newest tested sqlglot version, major and minor (`make test-versions`)."""


# Newer versions are accepted: the analysed tree is the tree that runs, and nodes without a rule are refused.
if tuple(map(int, sqlglot.__version__.split(".")[:2])) > NEWEST_TESTED:
    warnings.warn(
        f"dpsql has not been tested with sqlglot {sqlglot.__version__}: some queries may be refused. "
        f'Run pip install "sqlglot=={NEWEST_TESTED[0]}.{NEWEST_TESTED[1]}.*" to be sure.',
        stacklevel=2,
    )


class PrivateGenerator(DuckDBGenerator):
    """DuckDB's generator, extended by the three additions."""

    NAMED_PLACEHOLDER_TOKEN = ":"
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
        **DuckDBGenerator.TRANSFORMS,
        PrivacyClause: lambda self, node: self.privacyclause_sql(node),  # sqlglot finds only its own nodes by name
        NamedArguments: lambda self, node: self.named_sql(node),
        PriorValue: lambda _self, node: str(node.args["written"]),
        exp.PercentileCont: lambda self, node: self.percentile_sql(node, "CONT"),
        exp.PercentileDisc: lambda self, node: self.percentile_sql(node, "DISC"),
        exp.ApproxTopK: lambda self, node: self.function_fallback_sql(node),  # a text here, as APPROX_TOP_K(x, k)
    }

    def select_sql(self, expression: exp.Select) -> str:
        clause = expression.args.get("privacy")
        if clause is None:
            return super().select_sql(expression)
        expression.set("hint", clause)  # where it is written; the node decides what is written there
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
        # DuckDB's own method moves the order into the call, where dpsql does not read it.
        return super(DuckDBGenerator, self).withingroup_sql(expression)

    def percentile_sql(self, expression: exp.Expr, kind: str) -> str:
        # One node has both names: PERCENTILE_ before WITHIN GROUP, QUANTILE_ with the quantile as an argument.
        parent = expression.parent.parent if isinstance(expression.parent, NamedArguments) else expression.parent
        word = "PERCENTILE" if isinstance(parent, exp.WithinGroup) else "QUANTILE"
        return self.func(f"{word}_{kind}", expression.this, expression.args.get("expression"))


class PrivateTokenizer(DuckDB.Tokenizer):
    """DuckDB's tokens, and names in backticks, as in BigQuery, MySQL and Spark."""

    IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]


class PrivacyDialect(DuckDB):
    """The dialect of dpsql."""

    Tokenizer = PrivateTokenizer
    Parser = PrivateParser
    Generator = PrivateGenerator


# sqlglot rebuilds these for each dialect from its own body; DuckDB's are not empty.
PrivacyDialect.INVERSE_TIME_MAPPING = DuckDB.INVERSE_TIME_MAPPING
PrivacyDialect.INVERSE_TIME_TRIE = DuckDB.INVERSE_TIME_TRIE


def check_build(dialect: DuckDB) -> None:
    """Raise ImportError if sqlglot is the compiled build, whose classes cannot be extended."""
    try:
        dialect.parser()
    except TypeError:
        raise ImportError(
            "dpsql extends sqlglot's parser, which sqlglot's compiled build does not allow. "
            "Remove that build (pip uninstall sqlglotc); sqlglot works without it."
        ) from None


check_build(PrivacyDialect())
