"""How DistributedDataParallel may send its gradients: a hook gets a GradBucket and returns a Future of the
reduced one."""
