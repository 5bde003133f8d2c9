"""Columns of texts: the kinds of their values, by strict rules over whole columns.

A column has a kind only if every value that is not a gap follows the rule of that kind.
Values are Arrow strings without surrounding blanks; an empty cell is null.

- `kinds` names the kinds of columns, and the forms in which values are written
- `column_scan` counts in one pass which forms the values of a column have, and decides
  its kind; `decimal_mark` reads the decimal mark from the scans of all columns
- `text_reasons` says why a column stays text that looks like another kind, and which
  options of the shell make it one
- `conversion` makes Arrow numbers, truth values and times of texts, or returns the
  first value that is of another kind
- `numbers`, `dates`, `amounts` and `gaps` have the patterns and the parsing of one form
  each; `arrow_texts` is what all of them use
"""
