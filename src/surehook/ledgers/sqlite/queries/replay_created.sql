update replay set created = created + ? where id = ?
