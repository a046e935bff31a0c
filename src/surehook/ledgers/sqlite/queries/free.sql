-- After five frees in a row a delivery waits, since it may be what kills its holders.
update delivery set
  freed = freed + 1, due_at = iif(freed >= 4, max(due_at, ? + 10000), due_at), holder = null
where holder = ?
