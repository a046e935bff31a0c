select distinct endpoint from delivery where holder = ?
