insert into block_group (source, first, cuts) values (?, ?, ?)
