"""Allow-list for post-processing SQL: DuckDB's functions by name and number of arguments, its nodes, its types.

A function is listed if its value depends only on its arguments, and its work on their sizes (`work_limits`). No listed
function reads the clock (AGE of one timestamp does, AGE of two does not), randomness, settings, the catalog, variables
or files, runs a text as SQL, waits, or writes. None is quadratic in a text's length, or makes values whose size depends
on the values of arguments, except those that `work_limits` handles. Names are as DuckDB parses them, so neither
`'x'.read_text()` nor another spelling bypasses the list.
"""

from __future__ import annotations

from collections.abc import Mapping


def _listed(text: str) -> Mapping[str, frozenset[int]]:
    """Parse a list: `name:1,2` takes one or two arguments, `name:1-9` one to nine, `name` one."""
    listed: dict[str, frozenset[int]] = {}
    for word in text.split():
        name, _, counts = word.partition(":") if len(word) > 1 else (word, "", "")
        numbers: set[int] = set()
        for part in (counts or "1").split(","):
            first, _, last = part.partition("-")
            numbers |= set(range(int(first), int(last or first) + 1))
        listed[name] = listed.get(name, frozenset()) | numbers
    return listed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MANY = 255
"""Most arguments of a variadic function."""

OPERATORS = _listed(
    "+:1,2 -:1,2 *:2 /:2 //:2 %:2 ^:2 **:2 @:1 ||:2 &:2 |:2 <<:2 >>:2 ~:1 "
    "~~:2 !~~:2 ~~*:2 !~~*:2 ~~~:2 ^@:2 "
    "like_escape:3 not_like_escape:3 ilike_escape:3 not_ilike_escape:3"
)
_NUMBERS = _listed(
    "abs acos acosh add:2 asin asinh atan atan2:2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide:2 even "
    "exp factorial fdiv:2 floor fmod:2 gamma gcd:2 greatest_common_divisor:2 isfinite isinf isnan lcm:2 "
    "least_common_multiple:2 lgamma ln log:1,2 log10 log2 mod:2 multiply:2 pi:0 pow:2 power:2 radians round:1,2 "
    "round_even:2 sign signbit sin sinh sqrt subtract:2 tan tanh trunc:1,2 xor:2 "
    "nullif:2 ifnull:2 if:3"
)
_ANY = _listed(f"greatest:1-{MANY} least:1-{MANY} hash:1-{MANY} typeof:1 coalesce:1-{MANY}")
_TEXTS = _listed(
    f"ascii bit_length char_length character_length chr concat:1-{MANY} concat_ws:2-{MANY} contains:2 ends_with:2 "
    "instr:2 lcase left:2 len length length_grapheme lower lpad:3 ltrim:1,2 md5 nfc_normalize octet_length ord "
    "overlay:3,4 position:2 prefix:2 regexp_escape regexp_extract:2,3 regexp_extract_all:2,3 regexp_full_match:2,3 "
    "regexp_matches:2,3 regexp_replace:3,4 regexp_split_to_array:2 repeat:2 replace:3 reverse right:2 rpad:3 rtrim:1,2 "
    f"bar:3,4 printf:1-{MANY} format:1-{MANY} "
    "sha1 sha256 split:2 split_part:3 starts_with:2 str_split:2 str_split_regex:2 string_split:2 "
    "string_split_regex:2 string_to_array:2 strip_accents strlen strpos:2 substr:2,3 substring:2,3 suffix:2 "
    "translate:3 trim:1,2 ucase unicode upper to_base64 base64 hex to_hex bin to_binary"
)
_DATES = _listed(
    "age:2 century date_add:2 date_diff:3 date_part:2 date_sub:3 date_trunc:2 datediff:3 datepart:2 datesub:3 "
    "datetrunc:2 day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_us era hour "
    "isodow isoyear julian last_day make_date:1,3 make_time:3 make_timestamp:1,6 make_timestamp_ms microsecond "
    "millennium millisecond minute month monthname quarter second strftime:2 strptime:2 try_strptime:2 "
    "time_bucket:2,3 to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes "
    "to_months to_quarters to_seconds to_weeks to_years week weekday weekofyear year yearweek"
)
_LISTS = _listed(
    f"list_value:0-{MANY} array_value:1-{MANY} row:0-{MANY} struct_pack:0-{MANY} struct_extract:2 "
    f"struct_insert:1-{MANY} "
    "struct_keys struct_values list_append:2 array_append:2 list_prepend:2 array_prepend:2 list_concat:2 "
    "array_concat:2 list_cat:2 array_cat:2 list_contains:2 array_contains:2 list_has:2 array_has:2 list_has_all:2 "
    "array_has_all:2 list_has_any:2 array_has_any:2 list_distinct array_distinct list_extract:2 array_extract:2 "
    "list_element:2 element_at:2 list_filter:2 array_filter:2 list_transform:2 array_transform:2 list_apply:2 "
    "array_apply:2 apply:2 filter:2 list_position:2 array_position:2 list_indexof:2 array_indexof:2 list_slice:3 "
    "array_slice:3 list_sort:1-3 array_sort:1-3 list_reverse_sort:1,2 array_reverse_sort:1,2 "
    "list_reverse array_reverse "
    "list_unique array_unique list_zip:2 array_zip:2 flatten array_length:1 array_to_string:2 list_sum list_avg "
    "list_min "
    "list_max list_count list_median list_mode list_product list_first list_last list_any_value list_bool_and "
    "list_bool_or list_stddev_pop list_stddev_samp list_var_pop list_var_samp list_string_agg range:1-3 "
    "generate_series:1-3 unnest:1 map:0,2 map_keys map_values map_entries map_extract:2 map_extract_value:2 "
    "map_contains:2 cardinality map_from_entries"
)
AGGREGATES = _listed(
    "any_value approx_count_distinct approx_quantile:2 arbitrary arg_max:2,3 arg_min:2,3 argmax:2,3 argmin:2,3 "
    "max_by:2,3 min_by:2,3 array_agg avg bit_and bit_or bit_xor bool_and bool_or corr:2 count:0,1 count_star:0 "
    "count_if "
    "countif covar_pop:2 covar_samp:2 entropy favg first fsum geomean geometric_mean group_concat:1,2 histogram "
    "kahan_sum kurtosis kurtosis_pop last list listagg:1,2 mad max:1,2 mean median min:1,2 mode product quantile:2 "
    "quantile_cont:2 quantile_disc:2 regr_avgx:2 regr_avgy:2 regr_count:2 regr_intercept:2 regr_r2:2 regr_slope:2 "
    "regr_sxx:2 regr_sxy:2 regr_syy:2 sem skewness stddev stddev_pop stddev_samp string_agg:1,2 sum sumkahan var_pop "
    "var_samp variance wavg:2 weighted_avg:2"
)
WINDOWS = _listed(
    "row_number:0 rank:0 dense_rank:0 rank_dense:0 percent_rank:0 cume_dist:0 ntile:1 lag:1-3 lead:1-3 first_value "
    "last_value first last nth_value:2"
)
FUNCTIONS: Mapping[str, frozenset[int]] = {
    **OPERATORS,
    **_NUMBERS,
    **_ANY,
    **_TEXTS,
    **_DATES,
    **_LISTS,
    **AGGREGATES,
}
TABLE_FUNCTIONS = _listed("range:1-3 generate_series:1-3 unnest:1")

TYPES = _words(
    "TINYINT SMALLINT INTEGER INT INT1 INT2 INT4 INT8 INT16 INT32 INT64 INT128 BIGINT HUGEINT UTINYINT "
    "USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT FLOAT4 FLOAT8 REAL DOUBLE DECIMAL NUMERIC BOOLEAN BOOL VARCHAR "
    "TEXT STRING CHAR BPCHAR DATE TIME TIMESTAMP DATETIME TIMESTAMP_S TIMESTAMP_MS INTERVAL LIST ARRAY STRUCT "
    "MAP SHORT LONG SIGNED LOGICAL"
)

EXPRESSIONS: Mapping[str, frozenset[str]] = {
    "CONSTANT": frozenset({"VALUE_CONSTANT"}),
    "PARAMETER": frozenset({"VALUE_PARAMETER"}),
    "COLUMN_REF": frozenset({"COLUMN_REF"}),
    "LAMBDA_REF": frozenset({"LAMBDA_REF"}),
    "STAR": frozenset({"STAR"}),
    "FUNCTION": frozenset({"FUNCTION"}),
    "CAST": frozenset({"OPERATOR_CAST"}),
    "TYPE": frozenset({"TYPE"}),
    "CASE": frozenset({"CASE_EXPR"}),
    "BETWEEN": frozenset({"COMPARE_BETWEEN", "COMPARE_NOT_BETWEEN"}),
    "COMPARISON": frozenset(
        f"COMPARE_{each}"
        for each in [
            "EQUAL",
            "NOTEQUAL",
            "LESSTHAN",
            "GREATERTHAN",
            "LESSTHANOREQUALTO",
            "GREATERTHANOREQUALTO",
            "DISTINCT_FROM",
            "NOT_DISTINCT_FROM",
        ]
    ),
    "CONJUNCTION": frozenset({"CONJUNCTION_AND", "CONJUNCTION_OR"}),
    "OPERATOR": _words(
        "OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_NULLIF OPERATOR_TRY "
        "COMPARE_IN COMPARE_NOT_IN ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT ARRAY_CONSTRUCTOR GROUPING_FUNCTION "
        "OPERATOR_UNPACK"
    ),
    "SUBQUERY": frozenset({"SUBQUERY"}),
    "LAMBDA": frozenset({"LAMBDA"}),
    "WINDOW": _words(
        "WINDOW_AGGREGATE WINDOW_RANK WINDOW_RANK_DENSE WINDOW_NTILE WINDOW_PERCENT_RANK WINDOW_CUME_DIST "
        "WINDOW_ROW_NUMBER WINDOW_FIRST_VALUE WINDOW_LAST_VALUE WINDOW_NTH_VALUE WINDOW_LEAD WINDOW_LAG"
    ),
}
"""DuckDB's expression classes, and the types of each."""

NODES = _words(
    "SELECT_NODE SET_OPERATION_NODE CTE_NODE BASE_TABLE SUBQUERY JOIN EMPTY EXPRESSION_LIST TABLE_FUNCTION "
    "ORDER_MODIFIER LIMIT_MODIFIER DISTINCT_MODIFIER LIMIT_PERCENT_MODIFIER ORDER_DEFAULT ASCENDING "
    "DESCENDING"
)
"""Types of DuckDB's queries, relations and modifiers."""

READS_SURROUNDINGS = _words(
    "current_catalog current_database current_date current_query current_role current_schema current_time "
    "current_timestamp current_user localtime localtimestamp session_user user rowid"
)
"""Column names that DuckDB takes for functions if no column has them."""
