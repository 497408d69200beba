"""Splits a CSV line exactly like Spark's tokenizer (univocity with STOP_AT_DELIMITER).

This state machine examines one character at a time, so it is used only for lines that the fast readers might split
differently (``blocks.py``).
"""

from __future__ import annotations

from collections.abc import Collection

from kquery_spark.sources.csv.options import CsvOptions


class LineTokenizer:
    """Splits lines. The state machine has the variables of univocity's ``CsvParser``, so that both can be compared.

    A quoted value ends at a quote before a delimiter. Characters after a closing quote turn the whole value, quotes
    included, into an unquoted value up to the next delimiter. An opening quote that is never closed is dropped:

        "a,b",c    two values: a,b and c
        "a"b,c     two values: "a"b and c
        "a,b       one value: a,b
    """

    def __init__(self, options: CsvOptions) -> None:
        self._options = options
        # If the quote is also the escape character, only a doubled quote is an escape; otherwise a doubled escape is, too.
        self._escape_escape = None if options.quote == options.escape else options.escape

    def tokens(self, line: str, selected: Collection[int] | None = None) -> list[str]:
        """Split a line, which must not be empty.

        selected: the indexes of the columns that are read, or None for all. Univocity skips the other columns by a simpler
        rule, which finds another end of a value if a quote follows an escape. The strings of skipped columns are
        unspecified.
        """
        self._selected = selected
        self._line, self._at = line, 0
        self._values: list[str] = []
        self._text: list[str] = []
        self._ch = self._prev = ""
        self._unescaped = self._trim = False
        try:
            self._advance()
            self._record()
        except EOFError:
            self._finish()
        return self._values

    def _next(self) -> str:
        if self._at >= len(self._line):
            raise EOFError
        self._at += 1
        return self._line[self._at - 1]

    def _advance(self) -> None:
        self._ch = self._next()

    def _record(self) -> None:
        options = self._options
        while True:
            if options.trim_leading:
                self._skip_blanks()
            if self._ch == options.delimiter:
                self._values.append(options.null_value)
            else:
                self._unescaped = False
                self._prev = ""
                if self._ch != options.quote:
                    self._trim = options.trim_trailing
                    self._until_delimiter()
                    self._emit()
                elif not (self._skipped() or self._plainly_quoted()):
                    self._trim = False
                    self._quoted()
                    self._emit()
            self._advance()

    def _skipped(self) -> bool:
        """Skip a quoted value of a column that is not selected; False if the value must be parsed."""
        if self._selected is None or len(self._values) in self._selected:
            return False
        end = self._line.find(self._options.quote, self._at)
        while end >= 0 and self._line[end - 1] == self._options.escape:
            end = self._line.find(self._options.quote, end + 1)
        if end < 0 or self._line[end + 1 : end + 2] != self._options.delimiter:
            return False
        self._values.append("")
        self._at = end + 1
        self._advance()
        return True

    def _plainly_quoted(self) -> bool:
        """Read a quoted value that has no escapes and ends before a delimiter; False if the value has another form."""
        quote, escape, delimiter = self._options.quote, self._options.escape, self._options.delimiter
        end = self._line.find(quote, self._at)
        if end < 0 or self._line[end + 1 : end + 2] != delimiter or self._line[end - 1] == escape:
            return False
        text = self._line[self._at : end]
        if self._escape_escape is not None and escape * 2 in text:
            return False
        self._values.append(text or self._options.empty_value)
        self._at = end + 1
        self._advance()
        return True

    def _skip_blanks(self) -> None:
        while self._ch <= " " and self._ch not in (self._options.delimiter, self._options.quote):
            self._advance()

    def _emit(self) -> None:
        text = "".join(self._text)
        if self._trim:
            text = text.rstrip(_BLANKS)
        self._text.clear()
        self._values.append(text or self._options.empty_value)

    def _until_delimiter(self) -> None:
        """Append from the current character to the delimiter, which becomes the current character."""
        ch = self._ch
        while ch != self._options.delimiter:
            self._text.append(ch)
            ch = self._next()
        self._ch = ch

    def _until_special(self) -> None:
        ch = self._ch
        while ch != self._options.quote and ch != self._options.escape:
            self._text.append(ch)
            ch = self._next()
        self._ch = ch

    def _quoted(self) -> None:
        quote, escape, delimiter = self._options.quote, self._options.escape, self._options.delimiter
        self._advance()
        while not (self._prev == quote and (self._ch <= " " or self._ch == delimiter)):
            if self._ch in (quote, escape):
                self._escaped()
            else:
                if self._prev == quote:
                    self._unescaped = True
                    self._text += (quote, self._ch)
                    self._prev = self._ch
                    self._as_plain_text()
                    return
                if self._prev == escape:
                    self._text.append(escape)
                self._until_special()
            self._prev = self._ch
            self._advance()
            if self._unescaped and self._ch == delimiter:
                return
        if self._ch != delimiter:
            self._after_closing_quote()

    def _as_plain_text(self) -> None:
        """Read on to the delimiter, after characters behind the closing quote have made the value an unquoted one."""
        self._text.insert(0, self._options.quote)
        self._advance()
        self._trim = self._options.trim_trailing
        self._until_delimiter()

    def _after_closing_quote(self) -> None:
        """Drop blanks after a closing quote; other characters there make the quotes part of the value."""
        blanks = []
        while self._ch <= " " and self._ch != self._options.delimiter:
            blanks.append(self._ch)
            self._advance()
        if self._ch != self._options.delimiter:
            self._text += (self._options.quote, *blanks, self._ch)
            self._prev = self._ch
            self._as_plain_text()

    def _escaped(self) -> None:
        """Handle a quote or an escape inside a value. A character that is consumed as part of an escape becomes NUL."""
        quote, escape = self._options.quote, self._options.escape
        if self._ch == escape and self._prev == self._escape_escape:
            self._text.append(escape)
            self._ch = "\0"
        elif self._prev == escape:
            if self._ch == quote:
                self._text.append(quote)
                self._ch = "\0"
            else:
                self._text.append(self._prev)
        elif self._ch == quote and self._prev == quote:
            self._text.append(quote)
        elif self._prev == quote:
            self._text.append(quote)
            self._prev = self._ch
            self._unquoted_with_escapes()

    def _unquoted_with_escapes(self) -> None:
        while self._ch != self._options.delimiter:
            if self._ch != self._options.quote and self._ch != self._options.escape:
                if self._prev == self._options.quote:
                    self._text.append(self._options.quote)
                    self._prev = self._ch
                    continue  # univocity calls this method recursively instead, in the same state
                self._text.append(self._ch)
            else:
                self._escaped()
            self._prev = self._ch
            self._advance()

    def _finish(self) -> None:
        """Emit the last value. The line has ended inside a value, after one, or after a delimiter."""
        quote = self._options.quote
        value = self._ch == quote and self._prev == quote
        if not value:
            if self._ch == quote and not self._unescaped:
                self._text.append(quote)
            value = self._prev not in ("", "\0") and self._ch != self._options.delimiter
        if self._text or value:
            self._emit()
        else:
            self._values.append(self._options.null_value)


_BLANKS = "".join(map(chr, range(33)))
