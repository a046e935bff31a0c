"""The network, seen from the sender: one HTTP/1.1 client that no endpoint can hurt and no address can fool.

Endpoints are chosen by customers, so every one of them is taken for an adversary: of our time, memory and
network. What follows from that, and where it lives:

    guard        which URLs and addresses may be called; used at registration and by every attempt
    resolver     names to addresses; `dial` and `race` open connections to judged addresses only
    response     the bytes of an answer, read strictly under caps; `heads` their grammar, `chunks` chunked bodies
    connection   one connection: a request out, an answer in, reuse only after a clean answer
    wheel        deadlines; `pool` idle connections; `causes` foreign errors into our words
    tls          contexts; `material` what endpoints bring of their own, `contexts` keeps them, `sessions` resumption
    redirect     what may be followed; `proxy` CONNECT through an operator's egress proxy
    client       puts these in order and keeps the contract of `ports/transport.py`

Nothing is sent twice: once the first byte of a request is handed to a socket, its end is final and the
ledger decides what follows. Everything runs on primitives of the running loop (`call_later`,
`create_task`), with time handed in, so a simulated loop and network can take the place of the real ones.
"""
