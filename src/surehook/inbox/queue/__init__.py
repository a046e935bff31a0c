"""A queue in front of the inbox's table: a sender is answered when a broker has confirmed, and rows are written behind it.

    door ── judged ──> publisher ── confirm ──> 2xx      publisher.py   puts requests in; threads.py for threads
                         │ away, full, large              inbox_queue.py the queue of one inbox
                         └────> the table, as without     packing.py     requests as the bytes of one message
    broker ──> mover ── commit ──> acknowledge            mover.py       from the broker into the table
                                                          brokers.py     rabbitmq.py, redis.py by the scheme of a URL

**Authority.** The table stays the only truth. The queue is a place to wait in: whatever is in it comes into the table by the
same road as from a door, so dedupe, conflicts, workers and handlers know nothing of it. A message in it is believed, whatever
secret is rotated meanwhile: whoever can write into the queue is trusted.

**Failure.** Whatever is not confirmed in time goes to the table, which may then have it twice, and knows. What a mover took and
did not acknowledge comes again, to it or to another, and is a duplicate. What cannot be read, and what the table refuses while it
takes others, is put aside in the broker and told, and never thrown away.

**Order.** The broker's is not kept: workers take what is due by the time at which it arrived at the door.
"""
