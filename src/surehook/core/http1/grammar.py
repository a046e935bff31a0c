"""Pieces of the grammar of RFC 9110 and 9112 as regular expressions of bytes, for readers to compose.

Every repetition is possessive: no expression made of these walks back, so each is linear in any input.
"""

# A character of a method or of a header's name (RFC 9110 section 5.6.2).
TOKEN_CHAR = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
# Characters of a header's value, a reason or an extension: all but controls.
TEXT = rb"[\t -~\x80-\xff]*+"
# A header line without its end.
FIELD = TOKEN_CHAR + rb"++:" + TEXT
