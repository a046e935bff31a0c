delete from dismissed where delivery = ?
