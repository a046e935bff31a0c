"""HTTP/1.1 (RFC 9112) without input or output: strict readers of requests and of answers, and their grammar."""
