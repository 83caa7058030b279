"""Process groups: this build has none, and says so as a PyTorch without `USE_DISTRIBUTED` does.

Programs ask `is_available()` before anything else; what they may then still name is here: the types of errors
and of annotations."""


class DistError(RuntimeError):
    """Exception raised when an error occurs in the distributed library"""


class DistBackendError(DistError):
    """Exception raised when a backend error occurs in distributed"""


class DistNetworkError(DistError):
    """Exception raised when a network error occurs in distributed"""


class DistStoreError(DistError):
    """Exception raised when an error occurs in the distributed store"""


class QueueEmptyError(DistStoreError):
    """Exception raised when an error occurs in the distributed store"""


class _Annotation:
    """What annotations name; no object of it exists where there are no process groups."""


GroupName = ProcessGroup = _Annotation


def is_available() -> bool:
    """Whether process groups can be made."""
    return False


for _class in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _class.__module__ = "torch.distributed"
