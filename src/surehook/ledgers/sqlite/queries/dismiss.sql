insert or replace into dismissed (delivery, note, at) values (?, ?, ?)
