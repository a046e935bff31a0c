"""What a receiver may answer, and what becomes of it. Ids V01-V36 name the classes of docs and issues.

`status` is the expected status, or None with a `failure`. `reused`: the connection may carry another request.
`end` is what the receiver does after its last byte: hang, close, or reset.
"""

from __future__ import annotations

from dataclasses import dataclass

CRLF = b"\r\n"


@dataclass(frozen=True)
class Case:
    id: str
    data: bytes
    status: int | None = 200
    failure: str | None = None
    body: bytes | None = b""
    truncated: bool = False
    reused: bool = True
    end: str = "hang"


def answer(*lines: bytes, start: bytes = b"HTTP/1.1 200 OK", body: bytes = b"") -> bytes:
    return CRLF.join((start, *lines)) + CRLF + CRLF + body


def sized(body: bytes, *lines: bytes, start: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return answer(*lines, b"content-length: %d" % len(body), start=start, body=body)


def chunked(raw: bytes, *lines: bytes) -> bytes:
    return answer(*lines, b"Transfer-Encoding: chunked", body=raw)


def bad(id: str, data: bytes, failure: str, end: str = "hang") -> Case:
    return Case(id, data, None, failure, None, False, False, end)


STATUSES = [200, 201, 202, 204, 205, 206, 226, 299, 300, 302, 304, 305, 306, 307, 399, 400, 401, 404, 408, 410, 418, 425,
            429, 451, 499, 500, 501, 502, 503, 504, 511, 599]  # fmt: skip

CASES = [
    *(
        Case(f"V01 V06-V11 status {code}", sized(b"", start=b"HTTP/1.1 %d Word" % code), code)
        for code in STATUSES
    ),
    Case("V01 204 without length", answer(start=b"HTTP/1.1 204 No Content"), 204),
    Case(
        "V01 204 with a body it must not have",
        sized(b"xx", start=b"HTTP/1.1 204 No Content"),
        204,
        reused=False,
    ),
    Case("V01 no reason phrase", sized(b"ok", start=b"HTTP/1.1 200 "), body=b"ok"),
    Case("V01 no reason phrase, no space", sized(b"ok", start=b"HTTP/1.1 200"), body=b"ok"),
    Case("V02 error text in a success", sized(b'{"error":"failed"}'), body=b'{"error":"failed"}'),
    *(
        Case(f"V03 {code} first", answer(start=b"HTTP/1.1 %d Wait" % code) + sized(b"ok"), body=b"ok")
        for code in (100, 102, 103)
    ),
    Case(
        "V03 five interim answers",
        answer(b"link: </x>", start=b"HTTP/1.1 103 Early Hints") * 5 + sized(b"ok"),
        body=b"ok",
    ),
    bad(
        "V04 six interim answers",
        answer(start=b"HTTP/1.1 100 Continue") * 6 + sized(b"ok"),
        "too_many_informational",
    ),
    bad("V04 interim answers only, then silence", answer(start=b"HTTP/1.1 102 Processing") * 3, "timeout"),
    bad(
        "V05 switching protocols",
        answer(b"upgrade: h2c", start=b"HTTP/1.1 101 Switching Protocols"),
        "switched_protocols",
    ),
    bad(
        "V05 101 after 100",
        answer(start=b"HTTP/1.1 100 C") + answer(start=b"HTTP/1.1 101 S"),
        "switched_protocols",
    ),
    *(
        bad(f"V04 interim {code}", answer(start=b"HTTP/1.1 %d X" % code), "bad_status")
        for code in (104, 150, 199)
    ),
    bad("V04 interim with a length", sized(b"", start=b"HTTP/1.1 100 Continue"), "bad_framing"),
    bad(
        "V04 interim with chunked",
        answer(b"transfer-encoding: chunked", start=b"HTTP/1.1 103 X"),
        "bad_framing",
    ),
    *(
        bad(f"V12 status {text.decode()}", sized(b"", start=b"HTTP/1.1 %b OK" % text), "bad_status")
        for text in (
            b"600",
            b"999",
            b"099",
            b"20",
            b"2000",
            b"2OO",
            b"000",
            b"-200",
            b"+200",
            b" 200",
            b"0200",
            b"200.1",
            b"2e2",
            b"20 0",
            b"",
        )
    ),
    bad("V12 no status at all", b"HTTP/1.1\r\n\r\n", "not_http"),
    bad("V12 status glued to its reason", sized(b"", start=b"HTTP/1.1 200OK"), "bad_status"),
    bad("V13 HTTP/0.9", b"<html>hello</html>\r\n", "not_http", "close"),
    bad("V13 HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "not_http"),
    bad("V13 HTTP/2 settings frame", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", "not_http"),
    bad("V13 TLS alert", b"\x15\x03\x01\x00\x02\x02\x46", "not_http"),
    bad("V13 SSH banner", b"SSH-2.0-OpenSSH_9.6\r\n", "not_http"),
    bad("V13 SMTP banner", b"220 mail.example ESMTP ready\r\n", "not_http"),
    bad("V13 FTP banner", b"220 (vsFTPd 3.0.5)\r\n", "not_http"),
    bad("V13 Redis", b"-ERR unknown command\r\n", "not_http"),
    *(
        bad(f"V13 version {text.decode()}", sized(b"", start=text + b" 200 OK"), "not_http")
        for text in (
            b"HTTP/2.0",
            b"HTTP/1.2",
            b"HTTP/1",
            b"HTTP/1.10",
            b"http/1.1",
            b"HTTP/01.1",
            b"HTTPS/1.1",
            b"ICY",
            b"RTSP/1.0",
            b"XHTTP/1.1",
            b" HTTP/1.1",
            b"HTTP /1.1",
        )
    ),
    bad("V13 tab after the version", sized(b"", start=b"HTTP/1.1\t200 OK"), "not_http"),
    bad("V13 empty line first", b"\r\n" + sized(b"ok"), "not_http"),
    Case(
        "V14 HTTP/1.0 until close",
        answer(start=b"HTTP/1.0 200 OK", body=b"old"),
        body=b"old",
        reused=False,
        end="close",
    ),
    Case(
        "V14 HTTP/1.0 with length",
        sized(b"old", b"connection: keep-alive", start=b"HTTP/1.0 200 OK"),
        body=b"old",
        reused=False,
    ),
    Case("V14 HTTP/1.1 until close", answer(body=b"text"), body=b"text", reused=False, end="close"),
    Case(
        "V14 HTTP/1.1 until close that never comes",
        answer(body=b"text"),
        body=b"text",
        truncated=True,
        reused=False,
    ),
    Case(
        "V14 HTTP/1.0 with length alone", sized(b"old", start=b"HTTP/1.0 200 OK"), body=b"old", reused=False
    ),
    bad(
        "V14 HTTP/1.0 with chunked",
        answer(b"transfer-encoding: chunked", start=b"HTTP/1.0 200 OK"),
        "bad_framing",
    ),
    bad(
        "V15 the same length twice",
        answer(b"content-length: 2", b"content-length: 2", body=b"ok"),
        "bad_framing",
    ),
    bad(
        "V15 the same length twice, other case",
        answer(b"Content-Length: 2", b"CONTENT-LENGTH: 2", body=b"ok"),
        "bad_framing",
    ),
    bad("V16 two lengths", answer(b"content-length: 2", b"content-length: 3", body=b"ok!"), "bad_framing"),
    bad(
        "V17 length and chunked",
        answer(b"content-length: 2", b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
        "bad_framing",
    ),
    bad(
        "V17 chunked and length",
        answer(b"transfer-encoding: chunked", b"content-length: 2", body=b"0\r\n\r\n"),
        "bad_framing",
    ),
    *(
        bad(
            f"V18 length {text.decode('latin-1')!r}",
            answer(b"content-length:" + text, body=b"hello"),
            "bad_framing",
        )
        for text in (
            b"+5",
            b"0x5",
            b"5,5",
            b"5, 5",
            b"-1",
            b"18446744073709551616",
            b"5 5",
            b"5;",
            b"",
            b" ",
            b"5.0",
            b"1e1",
            b"5L",
            b"\xb2",
            b"9999999999999999999",
            b"0b1",
            b"five",
            b"_5",
            b"1_0",
        )
    ),
    Case("V18 length with outer space", answer(b"content-length: \t 2 \t", body=b"ok"), body=b"ok"),
    Case("V18 length with leading zeros", answer(b"content-length: 0002", body=b"ok"), body=b"ok"),
    Case("V19 chunked", chunked(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), body=b"hello world"),
    Case("V19 empty chunked", chunked(b"0\r\n\r\n")),
    Case("V19 upper case sizes", chunked(b"A\r\n0123456789\r\n00\r\n\r\n"), body=b"0123456789"),
    Case("V19 chunk extension", chunked(b"5;a=b\r\nhello\r\n0;x\r\n\r\n"), body=b"hello", reused=False),
    *(
        Case(
            f"V19 chunk size {text.decode('latin-1')!r}",
            chunked(text + b"\r\nhello\r\n0\r\n\r\n"),
            truncated=True,
            reused=False,
        )
        for text in (
            b"0x5",
            b"-5",
            b"+5",
            b" 5",
            b"5 ",
            b"00000000000000005",
            b"",
            b"g",
            b"5\t",
            b"five",
            b"5\x00",
            b"\xb2",
            b"5,5",
            b"5\xa0",
            b"5;" + b"x" * 300,
        )
    ),
    Case(
        "V19 no line end after a chunk",
        chunked(b"5\r\nhello0\r\n\r\n"),
        body=b"hello",
        truncated=True,
        reused=False,
    ),
    Case("V19 bare LF between chunks", chunked(b"5\nhello\n0\n\n"), truncated=True, reused=False),
    Case(
        "V19 chunk longer than its size",
        chunked(b"5\r\nhello!\r\n0\r\n\r\n"),
        body=b"hello",
        truncated=True,
        reused=False,
    ),
    Case(
        "V19 a chunk of 2^63",
        chunked(b"7fffffffffffffff\r\nhello"),
        body=b"hello",
        truncated=True,
        reused=False,
    ),
    Case(
        "V19 a million chunks of one byte",
        chunked(b"1\r\nx\r\n" * 20_000),
        body=None,
        truncated=True,
        reused=False,
    ),
    *(
        bad(
            f"V20 coding {text.decode('latin-1')!r}",
            answer(b"transfer-encoding: " + text, body=b"0\r\n\r\n"),
            "bad_framing",
        )
        for text in (
            b"gzip, chunked",
            b"chunked, chunked",
            b"xchunked",
            b"chunked;",
            b"identity",
            b"gzip",
            b"",
            b"chunked, identity",
            b'"chunked"',
            b"chunkedx",
            b"chun ked",
            b",chunked",
            b"deflate",
            b"chunked;q=1",
        )
    ),
    bad(
        "V20 two codings",
        answer(b"transfer-encoding: chunked", b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
        "bad_framing",
    ),
    bad(
        "V20 two codings, gzip first",
        answer(b"transfer-encoding: gzip", b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
        "bad_framing",
    ),
    Case("V20 coding in other case", answer(b"Transfer-Encoding: CHUNKED", body=b"0\r\n\r\n")),
    Case(
        "V21 body shorter than promised",
        answer(b"content-length: 9", body=b"half"),
        body=b"half",
        truncated=True,
        reused=False,
        end="close",
    ),
    Case("V21 body that never comes", answer(b"content-length: 9"), truncated=True, reused=False),
    Case(
        "V21 reset inside the body",
        answer(b"content-length: 9", body=b"half"),
        body=b"half",
        truncated=True,
        reused=False,
        end="reset",
    ),
    Case(
        "V21 chunked body that breaks off",
        chunked(b"5\r\nhel"),
        body=b"hel",
        truncated=True,
        reused=False,
        end="close",
    ),
    Case(
        "V21 length of 10^17",
        answer(b"content-length: 100000000000000000", body=b"x"),
        body=b"x",
        truncated=True,
        reused=False,
    ),
    Case(
        "V22 more body than promised",
        answer(b"content-length: 2", body=b"ok and more"),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V22 a second answer behind the first",
        sized(b"ok") + sized(b"evil", start=b"HTTP/1.1 500 No"),
        body=b"ok",
        reused=False,
    ),
    Case("V22 a second answer behind chunks", chunked(b"0\r\n\r\n") + sized(b""), reused=False),
    Case("V22 a byte behind a 204", answer(start=b"HTTP/1.1 204 No") + b"x", 204, reused=False),
    *(
        bad(f"V23 {name}", raw, "bad_headers")
        for name, raw in (
            ("folded header", answer(b"x-a: 1", b" 2", b"content-length: 0")),
            ("folded by tab", answer(b"x-a: 1", b"\t2", b"content-length: 0")),
            ("folded first header", answer(b" x-a: 1", b"content-length: 0")),
            ("bare LF everywhere", b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok"),
            ("bare LF after the status line", b"HTTP/1.1 200 OK\ncontent-length: 0\r\n\r\n"),
            ("bare LF after a header", b"HTTP/1.1 200 OK\r\nx-a: 1\ncontent-length: 0\r\n\r\n"),
            ("bare LF at the end", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\n"),
            ("bare CR in a value", answer(b"x-a: 1\r2", b"content-length: 0")),
            ("bare CR between lines", b"HTTP/1.1 200 OK\rcontent-length: 0\r\r\n\r\n"),
            ("doubled CR", b"HTTP/1.1 200 OK\r\r\ncontent-length: 0\r\n\r\n"),
            ("space before the colon", answer(b"content-length : 0")),
            ("tab before the colon", answer(b"content-length\t: 0")),
            ("empty name", answer(b": x", b"content-length: 0")),
            ("no colon", answer(b"just words", b"content-length: 0")),
            ("a name with a space", answer(b"x a: 1", b"content-length: 0")),
            ("a name with a bracket", answer(b"x(a): 1", b"content-length: 0")),
            ("a name with a high byte", answer(b"x\xe9: 1", b"content-length: 0")),
            ("NUL in a name", answer(b"x\x00a: 1", b"content-length: 0")),
            ("bare CR in the reason", sized(b"", start=b"HTTP/1.1 200 O\rK")),
            ("NUL in the reason", sized(b"", start=b"HTTP/1.1 200 O\x00K")),
            ("escape in the reason", sized(b"", start=b"HTTP/1.1 200 \x1b[31mOK")),
        )
    ),
    *(
        bad(
            f"V24 control {byte:#04x} in a value",
            sized(b"", b"x-a: 1" + bytes((byte,)) + b"2"),
            "bad_headers",
        )
        for byte in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)
    ),
    *(
        Case(
            f"V24 high byte {byte:#04x} in a value",
            sized(b"ok", b"x-a: 1" + bytes((byte,)) + b"2"),
            body=b"ok",
        )
        for byte in (0x80, 0x9B, 0xE9, 0xFF)
    ),
    Case("V24 tab in a value", sized(b"ok", b"x-a: 1\t2"), body=b"ok"),
    Case("V24 empty value", sized(b"ok", b"x-a:"), body=b"ok"),
    Case("V25 a reason of 8 KiB", sized(b"ok", start=b"HTTP/1.1 200 " + b"r" * 8192), body=b"ok"),
    bad("V25 a reason of 9 KiB", sized(b"ok", start=b"HTTP/1.1 200 " + b"r" * 9216), "headers_too_large"),
    Case(
        "V25 markup in the reason", sized(b"ok", start=b"HTTP/1.1 200 <script>alert(1)</script>"), body=b"ok"
    ),
    Case(
        "V25 line ends in the body",
        sized(b"a\r\nHTTP/1.1 500 No\r\n\r\n"),
        body=b"a\r\nHTTP/1.1 500 No\r\n\r\n",
    ),
    Case("V26 cookies", sized(b"ok", b"set-cookie: a=b", b"set-cookie: c=d"), body=b"ok"),
    Case("V27 a Location on a success", sized(b"ok", b"location: http://127.0.0.1/"), body=b"ok"),
    *(
        Case(
            f"V28 {coding.decode()}",
            sized(b"\x1f\x8b\x08raw", b"content-encoding: " + coding),
            body=b"\x1f\x8b\x08raw",
        )
        for coding in (b"gzip", b"br", b"deflate", b"zstd", b"gzip, gzip", b"nonsense")
    ),
    Case("V29 16 KiB", sized(b"x" * 16_384), body=b"x" * 16_384),
    Case("V29 16 KiB and one", sized(b"x" * 16_385), body=b"x" * 16_384, truncated=True),
    Case("V29 64 KiB", sized(b"x" * 65_536), body=b"x" * 16_384, truncated=True),
    Case("V29 64 KiB and one", sized(b"x" * 65_537), body=b"x" * 16_384, truncated=True, reused=False),
    Case(
        "V29 64 KiB and one in chunks",
        chunked(b"10001\r\n" + b"x" * 65_537 + b"\r\n0\r\n\r\n"),
        body=b"x" * 16_384,
        truncated=True,
        reused=False,
    ),
    Case(
        "V29 1 MiB until close",
        answer(body=b"x" * 1_048_576),
        body=b"x" * 16_384,
        truncated=True,
        reused=False,
    ),
    Case("V30 trailers", chunked(b"2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n"), body=b"ok", reused=False),
    Case(
        "V30 trailers that frame",
        chunked(b"2\r\nok\r\n0\r\ncontent-length: 99\r\n\r\n"),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V30 endless trailers",
        chunked(b"2\r\nok\r\n0\r\n" + b"x-a: 1\r\n" * 20_000),
        body=b"ok",
        truncated=True,
        reused=False,
    ),
    bad("V32 reset before a byte", b"", "reset", "reset"),
    bad("V32 reset inside the head", b"HTTP/1.1 200 OK\r\ncontent-le", "reset", "reset"),
    bad("V32 close inside the head", b"HTTP/1.1 200 OK\r\ncontent-le", "eof", "close"),
    bad("V32 close inside the last line end", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r", "eof", "close"),
    Case("V32 reset after the head", answer(b"content-length: 5"), truncated=True, reused=False, end="reset"),
    Case("V32 reset after the whole answer", sized(b"ok"), body=b"ok", reused=False, end="reset"),
    Case("V35 connection: close", sized(b"ok", b"connection: close"), body=b"ok", reused=False),
    Case(
        "V35 Connection: Keep-Alive, Close",
        sized(b"ok", b"Connection: Keep-Alive, Close"),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V35 connection: upgrade",
        sized(b"ok", b"connection: upgrade", b"upgrade: h2c"),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V35 connection: keep-alive",
        sized(b"ok", b"connection: keep-alive", b"keep-alive: timeout=5"),
        body=b"ok",
    ),
    Case(
        "V35 keep-alive: timeout=1", sized(b"ok", b"keep-alive: timeout=1, max=9"), body=b"ok", reused=False
    ),
    Case(
        "V35 keep-alive, then closes at once",
        sized(b"ok", b"connection: keep-alive"),
        body=b"ok",
        reused=False,
        end="close",
    ),
    *(
        Case(
            f"V36 retry-after {text.decode()}",
            sized(b"", b"retry-after: " + text, start=b"HTTP/1.1 503 Busy"),
            503,
        )
        for text in (b"5", b"Sat, 21 Nov 2026 11:07:38 GMT", b"-1", b"soon", b"99999999999999999999")
    ),
    Case("F36 64 headers", sized(b"ok", *(b"x-%d: y" % n for n in range(63))), body=b"ok"),
    bad("F36 65 headers", sized(b"ok", *(b"x-%d: y" % n for n in range(64))), "headers_too_large"),
    bad("F36 50,000 headers", sized(b"ok", *(b"x-%d: y" % n for n in range(50_000))), "headers_too_large"),
    Case("F36 a header line of 8 KiB", sized(b"ok", b"x: " + b"y" * 8189), body=b"ok"),
    bad("F36 a header line over 8 KiB", sized(b"ok", b"x: " + b"y" * 8190), "headers_too_large"),
    bad("F36 a header of 2 MB", sized(b"ok", b"x: " + b"y" * 2_000_000), "headers_too_large"),
    Case("F36 16,000 bytes of headers", sized(b"ok", b"x: " + b"y" * 7900, b"z: " + b"y" * 7900), body=b"ok"),
    bad(
        "F36 over 16 KiB of headers",
        sized(b"ok", b"x: " + b"y" * 8000, b"z: " + b"y" * 8000, b"w: " + b"y" * 800),
        "headers_too_large",
    ),
    bad("F36 a head that never ends", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10, "timeout"),
    bad("F36 silence", b"", "timeout"),
    # A head that never ends is refused at the line that breaks it, not at the deadline.
    *(
        bad(f"F36 never ends: {name}", b"HTTP/1.1 " + raw, failure)
        for name, raw, failure in (
            ("status 600", b"600 X\r\n", "bad_status"),
            ("a word for a status", b"OK\r\n", "bad_status"),
            ("a space before a colon", b"200 OK\r\nx : y\r\n", "bad_headers"),
            ("a line without colon", b"200 OK\r\nx: y\r\nwords\r\n", "bad_headers"),
            ("a folded line", b"200 OK\r\nx: y\r\n z\r\n", "bad_headers"),
            ("a control in a line that is open", b"200 OK\r\nx: \x01", "bad_headers"),
            ("a line of 9 KiB that is open", b"200 OK\r\nx: " + b"y" * 9_216, "headers_too_large"),
            ("65 lines", b"200 OK\r\n" + b"x: y\r\n" * 65, "headers_too_large"),
        )
    ),
    # What comes first names it, wherever the answer is cut.
    bad("V12 a bad status before a bad header", b"HTTP/1.1 600 X\r\nx\x00: y\r\n\r\n", "bad_status"),
    bad("V12 a control in the reason of a bad status", b"HTTP/1.1 600 \x00\r\n\r\n", "bad_headers"),
    bad("V13 a bad version before a bare LF", b"HTTP/1.2 200 OK\n\r\n\r\n", "not_http"),
    bad("V13 a colon for a version", b"HTTP/1.1: 200\r\nx: y\r\n\r\n", "not_http"),
    bad(
        "F36 a bad line before too many",
        answer(b"x y: z", *(b"x-%d: y" % n for n in range(99))),
        "bad_headers",
    ),
    bad(
        "F36 a control behind the cap of a line",
        sized(b"", b"x: " + b"y" * 9_000 + b"\x00"),
        "headers_too_large",
    ),
    bad("F36 a control before the cap of a line", sized(b"", b"x: \x00" + b"y" * 9_000), "bad_headers"),
    # Legal, but read differently by some: by status, and no other request goes the same way.
    Case("V20 chunked, then a tab", answer(b"transfer-encoding: chunked\t", body=b"0\r\n\r\n"), reused=False),
    Case("V20 a tab, then chunked", answer(b"transfer-encoding:\tchunked", body=b"0\r\n\r\n"), reused=False),
    Case(
        "V03 an interim answer that says close",
        answer(b"connection: close", start=b"HTTP/1.1 103 Early Hints") + sized(b"ok"),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V35 keep-alive: timeout with spaces",
        sized(b"ok", b'keep-alive: max=9,\ttimeout = "1"'),
        body=b"ok",
        reused=False,
    ),
    # More of the same classes.
    *(
        Case(f"V18 length {text.decode()!r}", answer(b"content-length:" + text, body=b"ok"), body=b"ok")
        for text in (b"2", b"\t2", b"  2  ", b"000000000000000002")
    ),
    *(
        bad(
            f"V18 length {text.decode('latin-1')!r}",
            answer(b"content-length: " + text, body=b"ok"),
            "bad_framing",
        )
        for text in (
            b"2,",
            b",2",
            b"2,2,2",
            b"2, 3",
            b"--2",
            b"2-",
            b"2+",
            b"0X2",
            b'"2"',
            b"2\t2",
            b"0000000000000000002",
            b"2e0",
            b"\xd9\xa2",
            b"\xa02",
            b"0.2",
        )
    ),
    *(
        bad(
            f"V20 coding {text.decode('latin-1')!r}",
            answer(b"transfer-encoding: " + text, body=b"0\r\n\r\n"),
            "bad_framing",
        )
        for text in (
            b"chunked,",
            b"chunked ,",
            b"chunked, ",
            b"identity, chunked",
            b"trailers, chunked",
            b"chunked\xa0",
            b"\xa0chunked",
            b"chunked=1",
            b"'chunked'",
            b"chunke",
            b"chunked chunked",
            b"compress",
            b"x-chunked",
            b"cow",
        )
    ),
    bad(
        "V17 length 0 and chunked",
        answer(b"content-length: 0", b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
        "bad_framing",
    ),
    bad(
        "V17 length and a coding that is none",
        answer(b"content-length: 2", b"transfer-encoding: identity", body=b"ok"),
        "bad_framing",
    ),
    bad(
        "V17 both on a 204",
        answer(b"content-length: 0", b"transfer-encoding: chunked", start=b"HTTP/1.1 204 No"),
        "bad_framing",
    ),
    bad(
        "V16 two lengths on a 304",
        answer(b"content-length: 2", b"content-length: 3", start=b"HTTP/1.1 304 Same"),
        "bad_framing",
    ),
    Case(
        "V17 names that only look like framing",
        sized(
            b"ok",
            b"x-content-length: 9",
            b"content_length: 8",
            b"transfer_encoding: chunked",
            b"content-length-: 7",
        ),
        body=b"ok",
    ),
    Case("V22 length 0 and a body", answer(b"content-length: 0", body=b"body"), reused=False),
    Case("V22 a line end behind the body", sized(b"ok") + b"\r\n", body=b"ok", reused=False),
    Case("V22 close, then more", sized(b"ok", b"connection: close") + sized(b"no"), body=b"ok", reused=False),
    Case(
        "V01 304 with the length of what it stands for",
        answer(b"content-length: 5", start=b"HTTP/1.1 304 Same"),
        304,
        reused=False,
    ),
    Case("V01 205 with a body", sized(b"ok", start=b"HTTP/1.1 205 Reset"), 205, body=b"ok"),
    Case(
        "V01 204 with chunks",
        answer(b"transfer-encoding: chunked", start=b"HTTP/1.1 204 No", body=b"0\r\n\r\n"),
        204,
        reused=False,
    ),
    Case(
        "V14 HTTP/1.0 with keep-alive",
        sized(b"ok", b"connection: keep-alive", b"keep-alive: timeout=60", start=b"HTTP/1.0 200 OK"),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V14 HTTP/1.1 after an interim HTTP/1.0",
        answer(start=b"HTTP/1.0 100 Continue") + sized(b"ok"),
        body=b"ok",
    ),
    bad(
        "V05 101 at once, with h2c behind",
        answer(b"connection: upgrade", b"upgrade: h2c", start=b"HTTP/1.1 101 S") + b"\x00\x00\x00\x04\x00",
        "switched_protocols",
    ),
    bad(
        "V05 websocket",
        answer(b"connection: upgrade", b"upgrade: websocket", start=b"HTTP/1.1 101 S"),
        "switched_protocols",
    ),
    *(
        bad(
            f"V12 status {text.decode('latin-1')!r}", sized(b"", start=b"HTTP/1.1 %b OK" % text), "bad_status"
        )
        for text in (
            b"2 00",
            b"1000",
            b"00200",
            b"200,",
            b"0x200",
            b"2\xb200",
            b"xyz",
            b"- 200",
            b"1e2",
            b"700",
            b"060",
        )
    ),
    *(
        bad(f"V13 {name}", raw, "not_http")
        for name, raw in (
            ("an empty line for ever", b"\r\n\r\n"),
            ("JSON", b'{"status":200}'),
            ("a request for an answer", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"),
            ("TLS hello", b"\x16\x03\x03\x00\x31\x02\x00\x00\x2d"),
            ("POP3", b"+OK ready\r\n"),
            ("IMAP", b"* OK ready\r\n"),
            ("MySQL", b"\x4a\x00\x00\x00\x0a8.0.36\x00"),
            ("Redis error", b"-DENIED Redis\r\n"),
            ("a byte order mark", b"\xef\xbb\xbfHTTP/1.1 200 OK\r\n\r\n"),
            ("NUL first", b"\x00HTTP/1.1 200 OK\r\n\r\n"),
            ("two dots", b"HTTP/1..1 200 OK\r\n\r\n"),
            ("version 3", b"HTTP/3 200\r\n\r\n"),
            ("version 1.1 by the letter", b"HTTP/l.l 200 OK\r\n\r\n"),
        )
    ),
    *(
        Case(
            f"V19 chunk size {text.decode('latin-1')!r} is broken",
            chunked(text + b"\r\nhello\r\n0\r\n\r\n"),
            truncated=True,
            reused=False,
        )
        for text in (
            b"-0",
            b"5h",
            b"\t5",
            b"5 ;a",
            b"5\r",
            b"\r5",
            b"5:a",
            b"5;a\x00b",
            b"5;a\nb",
            b"0x",
            b"fffffffffffffffff",
            b"5.0",
            b"'5'",
        )
    ),
    Case(
        "V19 a quoted extension with a semicolon",
        chunked(b'2;a="b;c"\r\nok\r\n0\r\n\r\n'),
        body=b"ok",
        reused=False,
    ),
    Case(
        "V19 a chunk of 2^64-1",
        chunked(b"ffffffffffffffff\r\nhello"),
        body=b"hello",
        truncated=True,
        reused=False,
    ),
    Case(
        "V19 a flood of extensions",
        chunked(b"1;a=b;c=d;e=f\r\nx\r\n" * 20_000),
        body=None,
        truncated=True,
        reused=False,
    ),
    Case(
        "V30 a trailer line of 300 bytes",
        chunked(b"2\r\nok\r\n0\r\nx: " + b"y" * 300 + b"\r\n\r\n"),
        body=b"ok",
        truncated=True,
        reused=False,
    ),
    Case(
        "V30 a bare LF for the end of the trailers",
        chunked(b"2\r\nok\r\n0\r\n\n"),
        body=b"ok",
        truncated=True,
        reused=False,
    ),
    Case(
        "V30 a last chunk without its empty line",
        chunked(b"2\r\nok\r\n0\r\n"),
        body=b"ok",
        truncated=True,
        reused=False,
        end="close",
    ),
    *(
        Case(
            f"V30 a trailer that is none: {text.decode('latin-1')!r}",
            chunked(b"2\r\nok\r\n0\r\n" + text + b"\r\n\r\n"),
            body=b"ok",
            truncated=True,
            reused=False,
        )
        for text in (b"words", b"x : y", b" x: y", b": y", b"x\x00: y", b"x: a\nb: c")
    ),
]
