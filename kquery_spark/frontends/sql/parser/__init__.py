"""A recursive-descent parser for Spark's SQL, with a Pratt parser for expressions (``expressions.py``).

``Parser`` is a token stream with methods for the two rules that most other rules use: an expression and a query. Each other
rule is a function that takes the parser, in the module of its syntax: ``calls.parse_name_or_call(parser)``,
``relations.parse_from(parser)``. Functions named ``at_...`` only look ahead; functions named ``parse_...`` consume tokens.
"""
