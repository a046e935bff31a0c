"""Attacks on a running server over real sockets, and what a customer beside them notices.

Each test starts a server with two tenants. `acme` publishes at a steady, low rate to a receiver that answers at once; the
attacker, a process of its own, does what the test names. The same load is measured before the attack and during it.
Three things must hold through every attack: the server's memory stays bounded, the customer's requests are answered
(202, never 5xx) about as fast as before, and the customer's events arrive.

Runs alone, one test after another (`make adversary`): beside other tests the figures would be theirs.
"""
