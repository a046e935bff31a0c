-- Changes of the configuration wait for each other; accepts, which only read it, do not.
select version from configuration for no key update
