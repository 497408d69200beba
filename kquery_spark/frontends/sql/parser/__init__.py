"""The parser of Spark's SQL, by recursive descent.

``Parser`` is a token stream with the rules that recur in all others: an expression, a query. Every other rule is a function
that takes the parser, in the module of its syntax: ``calls.parse_name_or_call(parser)``, ``relations.parse_from(parser)``.
Functions named ``at_...`` only look at the tokens, functions named ``parse_...`` read them.
"""
