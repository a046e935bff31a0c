delete from configuration_change where version <= ?
