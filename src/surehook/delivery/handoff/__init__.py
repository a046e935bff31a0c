"""Ready work through a broker, where one is set up: what leaves, what comes, and what was lost on the way.

    send.py    ids that were marked and committed go out in messages; bounded, outside of any request
    sweep.py   one node of all marks what is ready and unmarked, or was lost, and sends the watermarks
    take.py    messages of the lanes that this node works: claimed by id, acknowledged when all of it is recorded
    link.py    the connection: made again after a loss; without one for a while, work is claimed from the ledger

Everything here may fail or be cut off at any moment and nothing is lost: the ledger knows what is ready, and
the marks say what a queue should know (ports/handoff.py).
"""
