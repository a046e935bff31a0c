"""Power loss, as a disk sees it.

`kill -9` proves little about a database: the kernel keeps what was written. Here the machine itself stops,
at any call the database makes to its files, and the disk keeps of everything that was not synced what it
likes: each 512-byte sector by itself old, new, any version between, or torn in two. A book is opened on
what is left and must be the book that was acknowledged, with or without the one call that was under way,
never with half of it.

The faults, in `disk.py`: power loss at the n-th call · sectors dropped, torn and reordered between two
syncs · a file that grew shows garbage where it was not synced · deletion undone · EIO on one write or sync,
once or for ever, the written pages then dropped although the next sync succeeds · disk full, for a while ·
a sync that lies. The last one nobody survives; it and `synchronous=NORMAL` are the negative controls, and
a campaign that does not catch them proves nothing.

    python -m tests.ledgers.powerloss --points 5000
"""
