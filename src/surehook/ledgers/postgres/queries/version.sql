select version from configuration
