select count(*) from pg_trigger where tgname = 'retiring' and tgenabled <> 'D'
