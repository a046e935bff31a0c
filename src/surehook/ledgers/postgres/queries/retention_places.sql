select walk, place from retention_place
