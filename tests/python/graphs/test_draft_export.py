"""`draft_export`: programs that `export` refuses, and the report of why."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, draft_export, export
from rushlight.export._draft_export import FailureType


def program(function):
    return type("Program", (nn.Module,), {"forward": staticmethod(function)})()


def kinds(exported):
    return [failure.failure_type for failure in exported._report.failures]


def branching(x, n):
    count = n.item()
    if count > 3:
        return x * count
    return x - count


def test_a_program_without_failures_is_that_of_export():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    draft = draft_export(model, (x,), dynamic_shapes=({0: Dim("rows")},))
    assert draft._report.successful() and not draft._report.failures
    assert "No issues were found" in str(draft._report)
    assert str(draft.graph) == str(export(model, (x,), dynamic_shapes=({0: Dim("rows")},)).graph)


def test_branches_go_the_example_s_way_and_are_checked(caplog):
    model, x = program(branching), torch.randn(3)
    with pytest.raises(Exception, match="Could not guard on data-dependent expression"):
        export(model, (x, torch.tensor(5)))
    draft = draft_export(model, (x, torch.tensor(5)))
    assert kinds(draft) == [FailureType.DATA_DEPENDENT_ERROR]
    (failure,) = draft._report.failures
    assert (failure.data["expr"], failure.data["result"]) == ("u0 > 3", True)
    assert failure.data["stack"][-1]["loc"] == "if count > 3:"
    assert not draft._report.successful() and "`u0 > 3` depends on the data" in str(draft._report)
    assert "u0 > 3" in caplog.text
    assert torch.equal(draft.module()(x, torch.tensor(7)), x * 7)
    with pytest.raises(RuntimeError, match="u0 > 3"):
        draft.module()(x, torch.tensor(2))


def test_sizes_that_cannot_change_are_told():
    model = program(lambda x: x + torch.arange(4) if x.shape[0] == 4 else x)
    shapes = ({0: Dim("rows")},)
    with pytest.raises(Exception, match="Constraints violated"):
        export(model, (torch.ones(4),), dynamic_shapes=shapes)
    draft = draft_export(model, (torch.ones(4),), dynamic_shapes=shapes)
    assert kinds(draft) == [FailureType.GUARD_ADDED]
    assert "Constraints violated (rows)" in str(draft._report)
    assert draft._report.failures[0].data["new_dynamic_shapes"] == ({0: Dim.AUTO},)
    assert draft.module()(torch.ones(4)).tolist() == [1, 2, 3, 4]


@torch.library.custom_op("draft_tests::doubled_rows", mutates_args=())
def doubled_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x])


def test_operators_without_fakes_give_what_they_gave():
    model, x = program(lambda x: doubled_rows(x).sum(0) + 1), torch.randn(3, 2)
    with pytest.raises(Exception, match="no fake impl registered"):
        export(model, (x,))
    draft = draft_export(model, (x,))
    assert FailureType.MISSING_FAKE_KERNEL in kinds(draft)
    assert 'register_fake("draft_tests::doubled_rows")' in str(draft._report)
    torch.testing.assert_close(draft.module()(x), 2 * x.sum(0) + 1)
    with pytest.raises(Exception, match="no fake impl registered"):  # nothing stays
        export(model, (x,))
