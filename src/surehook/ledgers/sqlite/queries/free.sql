-- From the fifth time running a row waits: whatever it carries may be what kills its holders.
update delivery set
  freed = freed + 1, due_at = iif(freed >= 4, max(due_at, ? + 10000), due_at), holder = null
where holder = ?
