"""Modules of settings, counters, patterns in text: small modules that packages and test files import."""

import logging
import sys
import types
import unittest

import pytest

import rushlight as torch
from rushlight.testing import FileCheck
from rushlight.utils._config_module import Config, install_config_module


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.setenv("SETTING_ON", "1")
    module = types.ModuleType("settings_for_tests")
    module.__annotations__ = {"choice": bool | None}

    class group:
        speed = 1

    group.__module__ = module.__name__
    vars(module).update(
        group=group, level=2, names=["a"], choice=None, _private=3, _save_config_ignore=["level"],
        from_environment=Config(False, env_name_default="SETTING_ON"),
        forced=Config(False, env_name_force="SETTING_ON"),
        other_name=Config(alias="settings_for_tests.level"),
        old=Config(4, deprecated=True, deprecation_message="is of no use"),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, module.__name__, module)
    install_config_module(module)
    return module


def test_settings_are_read_and_set(settings):
    settings.level = 5
    settings.group.speed = 7
    assert (settings.level, settings.other_name, settings.group.speed) == (5, 5, 7)
    settings.other_name = 6
    assert settings.level == 6
    del settings.level
    assert settings.level == 2
    assert settings.from_environment is True
    settings.forced = False
    assert settings.forced is True  # the environment wins
    with pytest.raises(AttributeError, match="does not exist"):
        settings.unknown = 1
    with pytest.warns(FutureWarning, match="of no use"):
        assert settings.old == 4
    assert settings.get_type("choice") == bool | None


def test_settings_hold_for_a_while(settings):
    with settings.patch("level", 3), settings.patch({"group.speed": 9}):
        assert (settings.level, settings.group.speed) == (3, 9)
        with settings.patch(level=4):
            assert settings.level == 4
        assert settings.level == 3
    assert (settings.level, settings.group.speed) == (2, 1)

    @settings.patch(level=8)
    def inside():
        raise ValueError(settings.level)

    with pytest.raises(ValueError, match="8"):
        inside()
    assert settings.level == 2
    for wrong in (lambda: settings.patch(unknown=1), lambda: settings.patch("level")):
        with pytest.raises((AttributeError, AssertionError)):
            wrong()
    revert = settings._make_closure_patcher(level=11)()
    assert settings.level == 11
    revert()
    assert settings.level == 2


def test_settings_are_saved_and_compared(settings):
    before, saved = settings.get_hash(), settings.save_config()
    assert settings._is_default("names")
    settings.names.append("b")
    assert not settings._is_default("names")
    settings.group.speed = 3
    assert settings.get_hash() != before
    assert settings.codegen_config().splitlines() == [
        "settings_for_tests.group.speed = 3",
        "settings_for_tests.names = ['a', 'b']",
        "settings_for_tests.forced = True",
    ]
    settings.level = 10
    settings.load_config(saved)
    assert (settings.names, settings.group.speed, settings.level) == (["a"], 1, 10)
    assert "_private" not in settings.save_config_portable()
    copy = settings.to_dict()
    copy["names"].append("c")
    assert settings.names == ["a"]


def test_settings_of_the_compiler_can_be_patched():
    from rushlight._inductor.test_case import TestCase

    config = torch._inductor.config
    with config.patch({"triton.cudagraphs": True, "max_autotune": True}):
        assert config.triton.cudagraphs and config.max_autotune
    assert not config.triton.cudagraphs and not config.max_autotune

    class Case(TestCase):
        def runTest(self):
            self.assertEqual({"a": torch.ones(2)}, {"a": torch.ones(2)})
            with self.assertRaises(AssertionError):
                self.assertEqual(torch.ones(2), torch.zeros(2))
            assert torch._dynamo.config.verbose

    result = unittest.TestResult()
    unittest.defaultTestLoader.suiteClass([torch._dynamo.config.patch(verbose=True)(Case)()]).run(result)
    assert result.testsRun == 1 and result.wasSuccessful(), result.errors
    assert not torch._dynamo.config.verbose


def test_settings_of_other_values_are_as_in_pytorch():
    before = torch.get_float32_matmul_precision()
    with pytest.warns(UserWarning, match="tf32 is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("tf32")
    assert torch.get_float32_matmul_precision() == before
    with pytest.raises(RuntimeError, match="expects a str, but got int"):
        torch.set_float32_matmul_precision(2)
    with pytest.raises(TypeError, match="must be bool, not str"):
        torch.autograd.set_detect_anomaly("on")
    assert not torch.is_anomaly_enabled()


TEXT = "graph\n  a = add(x, y)\n  b = mul(a, a)\n         ~~~\n  return b\n"


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (lambda c: c.check("add").check_same("y").check_next("mul").check_not("add"), True),
        (lambda c: c.check("mul").check("add"), False),
        (lambda c: c.check("add").check_next("return"), False),
        (lambda c: c.check("graph").check_same("add"), False),
        (lambda c: c.check("graph").check_not("mul").check("return"), False),
        (lambda c: c.check("graph").check_not("return").check("mul"), True),
        (lambda c: c.check_dag("mul").check_dag("add").check("return"), True),
        (lambda c: c.check_dag("mul").check_dag("sub"), False),
        (lambda c: c.check_count("a,", 1, exactly=True), True),
        (lambda c: c.check_count("a", 2, exactly=True), False),
        (lambda c: c.check_regex(r"mul\(\w, \w\)").check("return"), True),
        (lambda c: c.check_source_highlighted("mul"), False),
        (lambda c: c.check_source_highlighted("(a,"), True),
    ],
)
def test_patterns_of_a_text(check, found):
    if found:
        check(FileCheck()).run(TEXT)
        return
    with pytest.raises(RuntimeError, match="Expected to"):
        check(FileCheck()).run(TEXT)


def test_patterns_are_read_from_a_text(capsys):
    FileCheck().run("# CHECK: add\n# CHECK-COUNT-2: a\n# CHECK-NOT: sub", TEXT)
    with pytest.raises(RuntimeError, match='Expected to not find "mul"'):
        FileCheck().run("# CHECK: add\n# CHECK-NOT: mul", TEXT)
    with pytest.raises(RuntimeError, match="Could not parse check"):
        FileCheck().run("add", TEXT)
    FileCheck().check("forgotten")
    assert capsys.readouterr().out == (
        "You have not run this instance of FileCheck!\nFileCheck checks:\n\tCHECK: forgotten\n\n"
    )


def test_errors_of_callbacks(caplog):
    first: torch.futures.Future = torch.futures.Future()
    first.add_done_callback(lambda future: 1 / 0)
    second = first.then(lambda future: [][future.wait()])
    with caplog.at_level(logging.ERROR, "torch.futures"):
        first.set_result(1)
    assert first.wait() == 1 and "ZeroDivisionError" in caplog.text
    with pytest.raises(RuntimeError, match="Got the following error.*IndexError") as caught:
        second.wait()
    assert isinstance(caught.value.__cause__, IndexError)
    for call in (torch.jit.wait, lambda n: torch.futures.wait_all([first, n])):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            call(None)
    import pickle

    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(first)


def test_counters_of_scripts():
    logging_ = torch.jit._logging
    logger = logging_.LockingLogger()
    before = logging_.set_logger(logger)
    try:

        @torch.jit.script
        def count(x):
            begin = torch.jit._logging.time_point()
            for i in range(x.size(0)):
                torch.jit._logging.add_stat_value("rows", i)
            torch.jit._logging.add_stat_value("time", torch.jit._logging.time_point() - begin)
            return x

        count(torch.ones(4, 2))
        assert logger.get_counter_val("rows") == 6 and logger.get_counter_val("time") > 0
        logger.set_aggregation_type("rows", logging_.AggregationType.AVG)
        assert logger.get_counter_val("rows") == 1
    finally:
        logging_.set_logger(before)
    counter = torch.monitor._WaitCounter("settings")
    with counter.guard():
        pass
    assert counter.calls == 1 and counter.seconds >= 0


def test_ranges_by_itts_names_are_those_of_profiles():
    itt = torch.profiler.itt
    assert not itt.is_available()
    with torch.profiler.profile() as profiled, itt.range("outer {}", 1):
        itt.range_push("inner")
        torch.ones(2).exp()
        itt.range_pop()
        itt.mark("moment")
    names = [event.key for event in profiled.key_averages()]
    assert {"outer 1", "inner", "moment"} <= set(names)
    with pytest.raises(RuntimeError, match="has begun no range"):
        itt.range_pop()


def test_short_names_of_dtypes():
    from rushlight.utils._dtype_abbrs import dtype_abbrs

    assert dtype_abbrs[torch.float32] == "f32" and dtype_abbrs[torch.bool] == "b8"


@pytest.mark.parametrize(
    ("wanted", "word"),
    [({"size": [3, 2]}, "sizes"), ({"stride": [1, 2]}, "strides"), ({"dtype": torch.int32}, "dtype"),
     ({"device": "meta"}, "device"), ({"layout": torch.sparse_coo}, "layout")],
)  # fmt: skip
def test_metadata_is_compared(wanted, word):
    x = torch.ones(2, 3)
    torch._assert_tensor_metadata(x, [2, 3], [3, 1], torch.float32, device="cpu", layout=torch.strided)
    with pytest.raises(RuntimeError, match=f"Tensor {word} mismatch! Expected"):
        torch._assert_tensor_metadata(x, **wanted)
