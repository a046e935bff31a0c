"""The network, seen from the sender: one HTTP/1.1 client that no endpoint can hurt and no address can fool.

Endpoints are chosen by customers, so every one of them is taken for an adversary: of our time, memory and
network. The parts:

    guard        judges URLs and addresses, at registration and for every attempt
    resolver     names to addresses; `dial` and `race` open connections to judged addresses only
    exchange     a request on its way: call, target, origin
    connection   one connection: a request out, an answer in, reuse only after a clean answer; `core/http1` reads it
    shared       the clock, buffer, pool, wheel, contexts and sessions that all connections of a client share
    wheel        deadlines; `pool` idle connections; `causes` translates foreign errors
    tls          contexts; `material` those of single endpoints, `contexts` keeps them, `context_turns` says whose is
                 made next, `sessions` resumes
    redirect     answers that may be followed; `proxy` CONNECT through an operator's egress proxy
    client       puts these in order and keeps the contract of `ports/transport.py`

Nothing is sent twice: once the first byte of a request is handed to a socket, its end is final and the
ledger decides what follows. Everything runs on primitives of the running loop (`call_later`,
`create_task`), with time handed in, so a simulated loop and network can take the place of the real ones.
"""
