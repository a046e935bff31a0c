"""Attacks on a running server over real sockets, and what a customer beside them notices.

Each test starts a server with two tenants. `acme` publishes at a steady, low rate to a receiver that answers at once; the
attacker, a process of its own, does what the test names. The same load is measured before the attack and during it.
Three things must hold through every attack: the server's memory stays bounded, the customer's requests are answered
(202, never 5xx) about as fast as before, and the customer's events arrive.

Where milliseconds are judged (`make adversary`), it runs alone, one test after another: beside other tests the figures would
be theirs. Elsewhere (`TIMED=0`) attacks run beside each other, each on a server, a ledger and receivers of its own; what is
judged then, answers, arrivals and the memory of its own server, is nobody else's.
"""
