"""The simulated world: production code on time that jumps, chance that is a seed, and processes that die.

What is real: everything between the HTTP door and the sockets. Engine, ledger (memory, or SQLite inline), wire
client, guard and signatures run unchanged, tied by `parts.py` as `bootstrap` ties them. What is simulated: the
loop (`loop`), clocks and chance (`clock`, `entropy`), the network with its customers and its DNS (`network`,
`receivers`, `resolver`), the way to the storage (`ledger`), machines and their supervisor (`node`), those who
publish and those who click (`publishers`, `people`).

The faults that must be survived, each drawn by the seed (`swarm`):

- a process is killed before any of its steps, or just before or after any call of the ledger took effect; its
  machine loses power (peers see silence instead of a reset); it is stopped in order, or frozen for a minute, also
  just while it dials
- its wall clock is off, drifts, and is set by seconds, hours or twenty days in either direction
- the storage is late, stalls, refuses calls, or commits without saying so (the answer of a commit is lost)
- connections are refused, unreachable, never answered, slow to come up, cut into pieces, reset or silent after
  any number of bytes
- receivers are slow, hang, drip, fail, throttle with any Retry-After, say 410, say `retryable: false`, have the
  wrong key, redirect, speak something else, break off, reset after they have acted
- names stop resolving, or turn to an address that nobody may be sent to
- endpoints are paused, activated, deleted, given another policy or secret; deliveries resent and cancelled
- publishers hang up, and say the same thing again

What must hold meanwhile and afterwards is the list at the top of `checkers`; `book` keeps a second account of
every committed call. `run` plays one seed, `campaign` many, `python -m lab sim` both.

Outside: power failure under SQLite (its own tests on a simulated file system), PostgreSQL, TLS, and slowness:
simulated time hides it, benches show it.
"""
