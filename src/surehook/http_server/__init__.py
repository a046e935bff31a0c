"""The HTTP/1.1 server under the API: it reads requests within bounds, runs an ASGI application, writes answers.

    server       listens, ticks once a second, and stops in order
    connections  every open connection in the line of what it waits for; who has waited too long, who makes room
    connection   one connection: from bytes to requests, one at a time
    exchange     one request and its answer, as ASGI sees them

It knows HTTP and nothing of what is served. What it refuses it counts, and says once in a while.
"""
