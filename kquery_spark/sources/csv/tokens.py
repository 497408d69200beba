"""Values of one CSV line exactly as Spark's tokenizer (univocity, stopping at delimiters) cuts them.

The path for odd lines: a character at a time, so it is used only where the quick path's answer might differ.
"""

from __future__ import annotations

from collections.abc import Collection

from kquery_spark.sources.csv.options import CsvOptions


class LineTokenizer:
    """Cuts lines; the state machine keeps univocity's variables so that both can be compared.

    A quoted value ends at a quote before a delimiter. Text after a closing quote turns the whole value,
    quotes included, into plain text up to the next delimiter. An opening quote never closed is dropped.
    """

    def __init__(self, options: CsvOptions) -> None:
        self._o = options
        # A doubled quote escapes itself only when the quote is the escape; else the escape does too.
        self._escape_escape = None if options.quote == options.escape else options.escape

    def tokens(self, line: str, selected: Collection[int] | None = None) -> list[str]:
        """The values of a line that is not empty.

        ``selected``: the columns to return when not all are; univocity skips others by a shorter rule,
        which sees other ends of values where a quote follows an escape. Their strings are unspecified.
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
        options = self._o
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
        """Skip a quoted value of a column that is not selected."""
        if self._selected is None or len(self._values) in self._selected:
            return False
        end = self._line.find(self._o.quote, self._at)
        while end >= 0 and self._line[end - 1] == self._o.escape:
            end = self._line.find(self._o.quote, end + 1)
        if end < 0 or self._line[end + 1 : end + 2] != self._o.delimiter:
            return False
        self._values.append("")
        self._at = end + 1
        self._advance()
        return True

    def _plainly_quoted(self) -> bool:
        """Take a quoted value that has no escapes and ends before a delimiter."""
        quote, escape = self._o.quote, self._o.escape
        end = self._line.find(quote, self._at)
        if end < 0 or self._line[end + 1 : end + 2] != self._o.delimiter or self._line[end - 1] == escape:
            return False
        text = self._line[self._at : end]
        if self._escape_escape is not None and escape * 2 in text:
            return False
        self._values.append(text or self._o.empty_value)
        self._at = end + 1
        self._advance()
        return True

    def _skip_blanks(self) -> None:
        while self._ch <= " " and self._ch not in (self._o.delimiter, self._o.quote):
            self._advance()

    def _emit(self) -> None:
        text = "".join(self._text)
        if self._trim:
            text = text.rstrip(_BLANKS)
        self._text.clear()
        self._values.append(text or self._o.empty_value)

    def _until_delimiter(self) -> None:
        """Append from the current character to the delimiter, which becomes the current character."""
        ch = self._ch
        while ch != self._o.delimiter:
            self._text.append(ch)
            ch = self._next()
        self._ch = ch

    def _until_special(self) -> None:
        ch = self._ch
        while ch != self._o.quote and ch != self._o.escape:
            self._text.append(ch)
            ch = self._next()
        self._ch = ch

    def _quoted(self) -> None:
        quote, escape, delimiter = self._o.quote, self._o.escape, self._o.delimiter
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
        """Go on to the delimiter in a value that text after its closing quote has turned into plain text."""
        self._text.insert(0, self._o.quote)
        self._advance()
        self._trim = self._o.trim_trailing
        self._until_delimiter()

    def _after_closing_quote(self) -> None:
        """Blanks after a closing quote are dropped; other text there makes the quotes part of the value."""
        blanks = []
        while self._ch <= " " and self._ch != self._o.delimiter:
            blanks.append(self._ch)
            self._advance()
        if self._ch != self._o.delimiter:
            self._text += (self._o.quote, *blanks, self._ch)
            self._prev = self._ch
            self._as_plain_text()

    def _escaped(self) -> None:
        """A quote or an escape inside a value; a character that has been used up becomes NUL."""
        quote, escape = self._o.quote, self._o.escape
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
        while self._ch != self._o.delimiter:
            if self._ch != self._o.quote and self._ch != self._o.escape:
                if self._prev == self._o.quote:
                    self._text.append(self._o.quote)
                    self._prev = self._ch
                    self._unquoted_with_escapes()
                    return
                self._text.append(self._ch)
            else:
                self._escaped()
            self._prev = self._ch
            self._advance()

    def _finish(self) -> None:
        """The line has ended inside a value, after one, or after a delimiter."""
        quote = self._o.quote
        value = self._ch == quote and self._prev == quote
        if not value:
            if self._ch == quote and not self._unescaped:
                self._text.append(quote)
            value = self._prev not in ("", "\0") and self._ch != self._o.delimiter
        if self._text or value:
            self._emit()
        else:
            self._values.append(self._o.null_value)


_BLANKS = "".join(map(chr, range(33)))
