"""What goes wrong between processes; the types are PyTorch's."""

from rushlight._command.names import show_from


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


show_from("distributed", DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError)
