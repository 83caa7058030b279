"""The former home of `torch.ao.quantization`."""

from rushlight.ao.quantization import DeQuantStub, FakeQuantizeBase, ObserverBase, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub", "QuantWrapper"]
