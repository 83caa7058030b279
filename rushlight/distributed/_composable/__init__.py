"""The former home of `fully_shard`."""
