"""DuckDB's parser, with a hook at each place where dpsql extends the grammar."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import Token, TokenType

from dpsql.sql.syntax import foreign_syntax as foreign
from dpsql.sql.syntax.incomplete_statements import CompleteParser
from dpsql.sql.syntax.nodes import NamedArguments, Node, OwnWords, PrivacyClause, is_name, placed
from dpsql.sql.syntax.spellings import AGGREGATE_NODES

_CALLED = frozenset({*AGGREGATE_NODES, exp.Anonymous, exp.Explode, exp.ReadCSV, exp.ReadParquet})
"""Nodes that may have named arguments: aggregates, DuckDB's table functions and functions that sqlglot does not know.

All are written as NAME(...). The generator writes other functions as operators, casts or sub-queries.
"""
_PLACELESS = frozenset({exp.Null, exp.Boolean, exp.Star, exp.Tuple, exp.DataType, exp.Parameter, exp.IntervalSpan})
_AROUND_CALLS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, NamedArguments)
_NAMES = frozenset(DuckDBParser.ID_VAR_TOKENS) - {TokenType.IDENTIFIER}
_WORDS = _NAMES - {TokenType.TRUE, TokenType.FALSE, TokenType.NULL}
_AFTER_VALUE = frozenset({TokenType.COMMA, TokenType.R_PAREN})


class PrivateParser(CompleteParser):
    """DuckDB's parser, with a hook at each place where dpsql extends the grammar."""

    LAMBDAS: ClassVar[dict[TokenType, Any]] = {
        token: parser for token, parser in DuckDBParser.LAMBDAS.items() if token is not TokenType.FARROW
    }
    # Operators called as functions would get reversed arguments, and LOG2(x, y) would be read as LOG2(x).
    FUNC_TOKENS: ClassVar[Any] = foreign.FUNC_TOKENS
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        name: build
        for name, build in DuckDBParser.FUNCTIONS.items()
        if name not in ("LIKE", "ILIKE", "GLOB", "LOG2", "LOG10")
    } | {
        "STD": exp.Stddev.from_arg_list,
        "GENERATE_ARRAY": DuckDBParser.FUNCTIONS["GENERATE_SERIES"],
        **foreign.FUNCTIONS,
    }
    # In CORR(DISTINCT y, x), DISTINCT would take both arguments as its list.
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **DuckDBParser.FUNCTION_PARSERS,
        **{
            name: lambda self, node=node: self._parse_distinct_arg_function(node)
            for node, spellings in AGGREGATE_NODES.items()
            if spellings[0].aggregate.pairs and issubclass(node, exp.Func)
            for name in node.sql_names()
        },
        **foreign.FUNCTION_PARSERS,
    }
    # After @ the parser reads NULL as a name.
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **DuckDBParser.NO_PAREN_FUNCTION_PARSERS,
        "@": lambda self: exp.Abs(this=self._parse_bare_null() or self._parse_bitwise()),
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **DuckDBParser.PLACEHOLDER_PARSERS,
        TokenType.COLON: lambda self: self._parse_colon_name(),
        TokenType.PARAMETER: lambda self: (
            (self._parse_colon_name() if self._prev.text == "$" else None) or self._parse_parameter()
        ),
    }

    _named: tuple[int, list[exp.Expr]] | None
    """Named arguments waiting for their call, and the index of its closing bracket."""
    _parameters: dict[int, Token]
    """Each `:name` that was read: the position of its colon, and the colon."""

    def reset(self) -> None:
        super().reset()
        self._named = None
        self._parameters = {}

    # Keys of GROUP BY: ROLLUP, CUBE and GROUPING SETS may hold any expression too, as in DuckDB

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        if with_prefix:
            return super()._parse_cube_or_rollup(with_prefix)
        kinds: dict[TokenType, type[exp.Cube | exp.Rollup]] = {TokenType.CUBE: exp.Cube, TokenType.ROLLUP: exp.Rollup}
        kind = next((kinds[token] for token in kinds if self._match(token)), None)
        if kind is None:
            return None
        return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_simplified_pivot(self, is_unpivot: bool | None = None) -> Any:
        return foreign.with_order(self, super()._parse_simplified_pivot(is_unpivot))

    # SELECT WITH DIFFERENTIAL_PRIVACY

    def _parse_hint(self) -> exp.Hint | None:
        # The only hook between SELECT and its list. The return value becomes the argument "hint".
        if self._curr and self._curr.text.upper() == "TOP":
            foreign.refuse_top(self)
        if self._prev.token_type is TokenType.SELECT and self._match(TokenType.WITH):
            return cast("exp.Hint", self._parse_privacy_clause())
        return super()._parse_hint()

    def _parse_join(self, *args: Any, **options: Any) -> Any:
        join = super()._parse_join(*args, **options)
        if join is not None and self._prev and self._prev.token_type is TokenType.ON:
            self.raise_error(OwnWords("a condition is missing after ON"), self._prev)
        return join

    def _parse_query_modifiers(self, this: Any) -> Any:
        # The first hook after the SELECT exists: move the clause to its own argument. LIMIT is not among the arguments
        # yet, so all clauses end up in the order of the text.
        if isinstance(this, exp.Select):
            if isinstance(clause := this.args.get("hint"), PrivacyClause):
                this.set("hint", None)
                this.set("privacy", clause)
            if this.args.get("limit") is None:
                this.args.pop("limit", None)
        return super()._parse_query_modifiers(this)

    def _parse_privacy_clause(self) -> PrivacyClause:
        first = self._prev
        if not self._match_text_seq("DIFFERENTIAL_PRIVACY"):
            self.raise_error(OwnWords("only DIFFERENTIAL_PRIVACY can stand after SELECT WITH"))
        last = self._prev
        options: list[exp.Expr] = []
        if self._next.token_type is TokenType.L_PAREN and self._match_text_seq("OPTIONS"):
            options = self._parse_wrapped_csv(self._parse_option)
        return placed(PrivacyClause(expressions=options), first, last)

    def _parse_option(self) -> exp.Expr:
        if not (self._curr.token_type in _NAMES and self._next.token_type is TokenType.EQ):
            self.raise_error(OwnWords("an option is written name = value"))
        name = self._parse_given_name()
        self._advance()
        return self.expression(exp.EQ(this=name, expression=self._parse_given_value()))

    def _parse_given_name(self) -> exp.Var:
        self._advance()
        return placed(exp.Var(this=self._prev.text), self._prev, self._prev)

    def _parse_given_value(self) -> exp.Expr | None:
        # A bare word is a name, even if DuckDB has a function (user) or type (json) of that name.
        if self._next.token_type in _AFTER_VALUE:
            if self._curr.token_type in _WORDS:
                return self._parse_given_name()
            if self._curr.token_type is TokenType.IDENTIFIER:
                return self._parse_identifier()
        first = self._curr
        value = self._parse_assignment()
        if value is None:
            self.raise_error(OwnWords("a value is missing here"))
            return None
        return placed(value, first, self._prev)

    # Named arguments

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        # The functions' builders count their arguments, so the named ones wait in `_named`.
        named: list[exp.Expr] = []

        def argument() -> exp.Expr | None:
            if self._next.token_type is TokenType.FARROW:
                named.append(self._parse_named_argument())
                return None
            if named:
                self.raise_error(OwnWords("after a named argument only named ones can follow (name => value)"))
            return self._parse_lambda(alias=alias)

        args = self._parse_csv(argument)
        if self._distinct_took_a_name(args):
            args[-1].set("expressions", args[-1].expressions[:-1])
            self._retreat(self._index - 1)
            args += self._parse_csv(argument)
        if named:
            self._named = (self._index, named)
        return args

    def _parse_named_argument(self) -> exp.Expr:
        if self._curr.token_type not in _NAMES:
            self.raise_error(OwnWords("a named argument is written name => value"))
        name = self._parse_given_name()
        self._advance()
        return self.expression(exp.Kwarg(this=name, expression=self._parse_given_value()))

    def _distinct_took_a_name(self, args: list[exp.Expr]) -> bool:
        # In COUNT(DISTINCT x, name => 1), DISTINCT reads everything up to the arrow as its list.
        return (
            self._curr.token_type is TokenType.FARROW
            and self._tokens[self._index - 2].token_type is TokenType.COMMA
            and bool(args)
            and isinstance(args[-1], exp.Distinct)
        )

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        # Called for each call when it closes, before FILTER, WITHIN GROUP and OVER are read.
        if self._named is not None and self._named[0] == self._index - 1:
            named, self._named = self._named[1], None
            if this is not None and type(this) in _CALLED:
                call = NamedArguments(this=this, expressions=named).update_positions(this)
                this = self.expression(call, comments=this.pop_comments())
            else:
                start = named[0].this.meta["start"]
                place = next(token for token in self._tokens if token.start == start)
                self.raise_error(OwnWords("this function has no named arguments"), place)
        return super()._parse_window(this, alias)

    # The names of calls and types as written, for messages: several names make one node.

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        name = self._curr
        node = super()._parse_function_call(*args, **options)
        inner = node
        while isinstance(inner, _AROUND_CALLS):
            inner = inner.this
        if isinstance(inner, exp.Expr):
            inner.meta.setdefault("word", name.text)
        return node

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        first = self._curr
        node = super()._parse_types(*args, **options)
        if isinstance(node, exp.DataType) and first and self._prev:
            node.meta.setdefault("word", self.sql[first.start : self._prev.end + 1])
            node.meta["near"] = (first.start, self._prev.end)
        return node

    # Positions for nodes without one, so that messages can point to them.

    def expression(self, instance: Node, *args: Any, **options: Any) -> Node:
        node: Node = super().expression(instance, *args, **options)
        if type(node) in _PLACELESS and self._prev:
            node.meta.setdefault("near", (self._prev.start, self._prev.end))
        return node

    def _parse_interval(self, *args: Any, **options: Any) -> Any:
        return self._from_here(super()._parse_interval, *args, **options)

    def _parse_group(self, *args: Any, **options: Any) -> Any:
        return self._from_here(super()._parse_group, *args, **options)

    def _parse_limit(self, *args: Any, **options: Any) -> Any:
        limit = self._from_here(super()._parse_limit, *args, **options)
        if isinstance(limit, exp.Limit) and limit.args.get("offset") is not None:
            self.raise_error(OwnWords("LIMIT takes one number, and OFFSET another: LIMIT 2 OFFSET 1"), self._prev)
        return limit

    def _from_here(self, parse: Any, *args: Any, **options: Any) -> Any:
        first = self._curr
        node = parse(*args, **options)
        if isinstance(node, exp.Interval | exp.Group | exp.Limit) and first and self._prev:
            node.meta.setdefault("near", (first.start, self._prev.end))
        return node

    def _parse_bare_null(self) -> exp.Null | None:
        bare = self._curr.token_type is TokenType.VAR and self._match_text_seq("NULL")  # after @ all words are VARs
        return self.expression(exp.Null()) if bare else None

    # Functions with their own parser: their position is the name before the bracket, as for all others.

    def _parse_distinct_arg_function(self, *args: Any, **options: Any) -> Any:
        name = self._tokens[self._index - 2]
        return placed(super()._parse_distinct_arg_function(*args, **options), name, name)

    def _parse_min_max(self, *args: Any, **options: Any) -> Any:
        name = self._tokens[self._index - 2]
        return placed(super()._parse_min_max(*args, **options), name, name)

    # Parameters

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        trees = super().parse(raw_tokens, sql)
        if self._parameters:
            self._check_parameters(trees)
        return trees

    def _check_parameters(self, trees: list[exp.Expr | None]) -> None:
        # sqlglot also reads a parameter in place of a name (COUNT(*) AS :n), and drops one used as a key of {...}.
        nodes = (node for tree in trees if tree is not None for node in tree.find_all(exp.Placeholder))
        values = {node.meta.get("start") for node in nodes if not is_name(node)}
        for start, colon in self._parameters.items():
            if start not in values:
                self.raise_error(OwnWords("a parameter stands for a value, not for a name or a word"), colon)

    def _parse_colon_name(self) -> exp.Placeholder | None:
        colon = self._prev
        if not self._match_set(_NAMES):
            return None
        self._parameters[colon.start] = colon
        return placed(self.expression(exp.Placeholder(this=self._prev.text)), colon, self._prev)

    def _parse_expression(self) -> exp.Expr | None:
        # Skip DuckDB's method, which reads the SELECT of `SELECT :p` as a prefix alias.
        if self._next.token_type is TokenType.COLON:
            self._refuse_prefix_alias()
        return super(DuckDBParser, self)._parse_expression()

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        if self._curr and self._curr.token_type is TokenType.L_BRACKET and self._next.token_type in _NAMES:
            self.raise_error(OwnWords(f'names stand in double quotes: "{self._next.text}"'), self._next)
        if self._next.token_type is not TokenType.COLON:
            return super()._parse_table(*args, **options)
        self._refuse_prefix_alias()
        return super(DuckDBParser, self)._parse_table(*args, **options)

    def _refuse_prefix_alias(self) -> None:
        if self._curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            after = "an alias stands after what it names (COUNT(*) AS n), not before it (n: COUNT(*))"
            self.raise_error(OwnWords(after))
