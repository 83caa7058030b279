"""rushlight-serve beside FastAPI and uvicorn on PyTorch, with the same models, under load from `wrk`.

python -m benchmarks.serving [--models mlp,resnet50] [--clients 1,16,64] [--seconds 5] [--rounds 5]
"""
