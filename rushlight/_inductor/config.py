"""Settings of the default back end."""

measure = True  # compare the first calls with running the program itself, and keep what is faster
force_disable_caches = False  # keep nothing on disk
freezing = True  # without gradients, compute what depends on parameters alone once until they are written to
batch_products = True  # small products by one matrix become one, whose last digits may differ
