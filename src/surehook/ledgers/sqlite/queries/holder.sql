select n.id from delivery d join node n on n.number = d.holder where d.id = ?
