"""Operators, and the words that the parser does not accept as names in certain positions.

Spark's default (non-ANSI) mode reserves no words: its grammar decides by unlimited lookahead whether ``from`` starts a
clause or is a column. Our parser looks only one or two tokens ahead, so a few words need backticks as a column name or
as an alias without AS. Where the parser is stricter than Spark, it raises an error with a position; it never gives a
query another meaning.
"""

from __future__ import annotations

#: Words that cannot start an expression as a bare column name (``t.select`` and ```select``` are fine).
NOT_A_COLUMN = frozenset(
    """SELECT FROM WHERE HAVING UNION INTERSECT EXCEPT JOIN ON USING AND OR AS IN IS WHEN THEN
    ELSE BETWEEN""".split()  # noqa: SIM905
)

#: Set operators; MINUS is another name of EXCEPT in Spark.
SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})

#: Words that only continue an expression or close one, so never an alias without AS.
OPERATOR_WORDS = frozenset(
    """AND OR NOT IN IS BETWEEN LIKE ILIKE RLIKE REGEXP DIV ESCAPE WHEN THEN ELSE AS ON USING JOIN
    SELECT""".split()  # noqa: SIM905
)

#: Words that start a clause. Such a word is an alias without AS only if the token after it cannot continue the clause.
CLAUSE_WORDS = (
    frozenset(
        "FROM WHERE HAVING QUALIFY LIMIT OFFSET".split()  # noqa: SIM905
    )
    | SET_OPERATORS
)

#: Words that start a clause only together with the word after them.
CLAUSE_PAIRS = {
    "GROUP": "BY",
    "ORDER": "BY",
    "SORT": "BY",
    "CLUSTER": "BY",
    "DISTRIBUTE": "BY",
    "LATERAL": "VIEW",
}

#: Spark's "strict non-reserved" words: names everywhere, but never a table alias.
NOT_A_TABLE_ALIAS = frozenset(
    """ANTI CROSS EXCEPT FULL INNER INTERSECT JOIN LATERAL LEFT NATURAL ON RIGHT SEMI MINUS UNION
    USING""".split()  # noqa: SIM905
)

#: Infix operators of the value layer and how tightly they bind; all associate to the left.
OPERATORS = {
    "=": 40,
    "<>": 40,
    "<": 40,
    "<=": 40,
    ">": 40,
    ">=": 40,
    "<=>": 40,
    "|": 50,
    "^": 60,
    "&": 70,
    "<<": 80,
    ">>": 80,
    ">>>": 80,
    "+": 90,
    "-": 90,
    "||": 90,
    "*": 100,
    "/": 100,
    "%": 100,
    "DIV": 100,
}

#: The first words of statements that Spark supports and this frontend does not; used for a clear error message.
STATEMENT_WORDS = frozenset(
    """ADD ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COMMIT CREATE DECLARE DELETE DESC DESCRIBE
    DROP EXECUTE EXPLAIN EXPORT GRANT IMPORT INSERT LIST LOAD LOCK MERGE MSCK REFRESH RENAME
    REPAIR REPLACE RESET REVOKE ROLLBACK SET SHOW START TRUNCATE UNCACHE UNLOCK UPDATE USE""".split()  # noqa: SIM905
)

#: Words that the expression parser may not read as names; the printer puts names that equal them in backticks.
QUOTED_WHEN_PRINTED = (
    NOT_A_COLUMN
    | SET_OPERATORS
    | OPERATOR_WORDS
    | CLAUSE_WORDS
    | CLAUSE_PAIRS.keys()
    | NOT_A_TABLE_ALIAS
    | frozenset(
        """ALL ANY ANY_VALUE ARRAY ASC BOTH CASE CAST CURRENT DATE DATEADD DATEDIFF DATE_ADD
        DATE_DIFF DESC DISTINCT END EXISTS EXTRACT FALSE FILTER FIRST FOLLOWING FOR GROUPING CUBE
        IGNORE INTERVAL LAST LEADING MAP NULL NULLS OUTER OVER OVERLAY PARTITION PIVOT PLACING
        POSITION PRECEDING RANGE RESPECT ROLLUP ROWS SETS SOME STRUCT SUBSTR SUBSTRING TABLE
        TABLESAMPLE TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIMESTAMP_LTZ TIMESTAMP_NTZ
        TO TRAILING TRIM TRUE TRY_CAST UNBOUNDED UNKNOWN UNPIVOT VALUES VERSION VIEW WINDOW WITH
        WITHIN X R RECURSIVE IDENTIFIER""".split()  # noqa: SIM905
    )
)
