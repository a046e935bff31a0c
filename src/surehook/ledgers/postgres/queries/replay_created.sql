update replay set created = created + $2 where id = $1
