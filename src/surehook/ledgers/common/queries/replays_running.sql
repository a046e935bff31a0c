select id, filter, dry_run, state, matched, created, created_at, finished_at, position
from replay where state = 'running' order by id
