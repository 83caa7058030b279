"""torch.cuda on a device made of host memory (tests/cpp/emulated_driver.h), in processes of its own."""

from test_device import HERE, needs_device, on_device


def run(file, **variables):
    """Runs a file of tests on the device; its failures are this test's."""
    printed = on_device(str(HERE / file), **variables)
    assert " passed" in printed and " failed" not in printed, printed[-3000:]


@needs_device
def test_runtime():
    run("device_runtime.py")


@needs_device
def test_a_failed_kernel_names_the_operators_before():
    assert on_device("device_failures.py", "late").endswith("done\n")


@needs_device
def test_blocking_names_the_operator():
    assert on_device("device_failures.py", "at_once", RUSHLIGHT_CUDA_BLOCKING="1").endswith("done\n")


@needs_device
def test_options_of_the_allocator():
    program = (
        "import rushlight as t\n"
        "a = [t.empty(n << 20, dtype=t.uint8, device='cuda') for n in (30, 50, 10)]\n"
        "s = t.cuda.memory_snapshot()\n"
        "assert len(s) == 1 and s[0]['is_expandable'] and s[0]['total_size'] == 100 << 20, s\n"
        "del a[1:]; t.cuda.synchronize(); t.cuda.empty_cache()\n"
        "assert t.cuda.memory_reserved() == 30 << 20, t.cuda.memory_reserved()\n"
        "assert (a[0].fill_(3) == 3).all().item(); print('done')"
    )
    printed = on_device("-c", program, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert printed.endswith("done\n")
    wrong = "import rushlight as t\ntry: t.cuda.device_count()\nexcept ValueError as e: print(e)"
    for given, text in (
        ("what:1", "Unrecognized CachingAllocator option: what"),
        ("max_split_size_mb:3", "too small"),
    ):
        assert text in on_device("-c", wrong, PYTORCH_CUDA_ALLOC_CONF=given)


@needs_device
def test_a_target_out_of_range_stops_the_device():
    assert on_device("device_failures.py", "target").endswith("done\n")


@needs_device
def test_layers():
    run("device_layers.py")


@needs_device
def test_libraries():
    run("device_libraries.py")


@needs_device
def test_profile():
    run("device_profile.py")


@needs_device
def test_features():
    run("device_features.py")


@needs_device
def test_work():
    run("device_work.py")
