with entered as (
  insert into node (id, host, boot_id, pid, started_at) values ($1, $2, $3, $4, $5)
  on conflict (id) do nothing
)
insert into beat (node, counter, at) values ($1, 0, $6) on conflict (node) do nothing
