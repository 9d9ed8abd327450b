"""What both example hosts share: the configuration, what stands behind each path, the way of an exchange, the log."""
