"""Lists and dictionaries of scripts whose entries come from elsewhere, against the type that is expected."""

import pytest

import rushlight

FITTING = [
    ("Dict[str, int]", "dict(a=1)", {"a": 1}),
    ("Dict[str, int]", "dict([])", {}),
    ("Dict[str, int]", "dict({'a': 1})", {"a": 1}),
    ("Dict[str, Any]", "dict(zip(['a'], [2]))", {"a": 2}),
    ("Dict[str, Optional[int]]", "dict(zip(['a'], [2]))", {"a": 2}),
    ("Union[Dict[str, int], int]", "dict([('a', 1)])", {"a": 1}),
    ("Union[Dict[str, int], Dict[str, str]]", "{'a' + x: 1 for x in ['b']}", {"ab": 1}),
    ("Union[Dict[str, int], Dict[str, str]]", "{'a': 1}", {"a": 1}),
    ("Union[List[int], List[str]]", "[x for x in ['a']]", ["a"]),
    ("List[Optional[int]]", "[x for x in [1]]", [1]),
]
KEY = "Dict type annotation `{}` did not match the type of an actual key type `{}`"
VALUE = "Dict type annotation `{}` did not match the type of an actual value type `{}`"
ELEMENT = (
    "List type annotation `{}` did not match the types of the given list elements, which were unified to {}"
)
TWO = "Union[Dict[str, int], Dict[str, str]]"
REFUSED = [
    ("Dict[int, str]", "dict([('a', 'b')])", KEY.format("Dict[int, str]", "str")),
    ("Dict[str, int]", "dict(a='b')", VALUE.format("Dict[str, int]", "str")),
    ("Dict[str, int]", "dict({'a': 'b'})", "Dict[str, int]"),
    ("Dict[str, float]", "dict(zip(['a'], [2]))", VALUE.format("Dict[str, float]", "int")),
    ("Dict[str, int]", "dict(zip([1, 'a'], [2, 2]))", "Dicts may only contain homogeneous keys"),
    ("Dict[str, int]", "dict(zip(['a', 'b'], [1, 'c']))", VALUE.format("Dict[str, int]", "Union[int, str]")),
    ("Dict[int, str]", "{'a' + x: 'b' for x in ['c']}", KEY.format("Dict[int, str]", "str")),
    ("List[int]", "[x for x in ['a']]", ELEMENT.format("List[int]", "str")),
    (TWO, "dict([('a', 'a')])", "full type inference is not yet supported for the `dict()` constructor"),
    (TWO, "{'a': 1.5}", "none of those dict types can hold the types of the given keys and values"),
    (
        "Dict[str, int]",
        "{'a': 'b'}",
        "be `Dict[str, int]`, but the type of values given by the dict literal is",
    ),
    ("int", "[2, 3]", "Expected an annotation of type List but got int"),
    (TWO, "{}", "there are multiple possible Dict type candidates in the Union annotation"),
    (
        "Union[List[int], List[str]]",
        "[1.5]",
        "can hold List[int] or List[str], but none of those types match the types of",
    ),
    ("Union[List[int], List[str]]", "[]", "there are multiple possible List type candidates in the Union"),
    ("Union[int, str]", "{'a': 1}", "Expected an Union type annotation with an inner Dict type"),
    ("Union[int, str]", "[1]", "Expected an Union type annotation with an inner List type"),
]


def compiled(framework, annotation, value):
    return framework.jit.CompilationUnit(f"def fn():\n    x: {annotation} = {value}\n    return x\n")


@pytest.mark.parametrize(("annotation", "value", "expected"), FITTING)
def test_what_fits_is_taken(annotation, value, expected):
    assert compiled(rushlight, annotation, value).fn() == expected


@pytest.mark.parametrize(("annotation", "value", "words"), REFUSED)
def test_what_does_not_fit_is_refused_when_the_script_is_made(annotation, value, words):
    with pytest.raises(RuntimeError) as error:
        compiled(rushlight, annotation, value)
    assert words in str(error.value)


@pytest.mark.parametrize(("annotation", "value", "words"), REFUSED)
def test_pytorch_refuses_the_same_in_the_same_words(torch, annotation, value, words):
    with pytest.raises(RuntimeError) as error:
        compiled(torch, annotation, value)
    assert words in str(error.value)
