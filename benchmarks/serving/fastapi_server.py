"""The peer: a model of PyTorch in FastAPI, served by uvicorn as their tutorials do.

python -m benchmarks.serving.fastapi_server MODEL PORT THREADS
"""

import sys

import torch
import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from . import models


class Numbers(BaseModel):
    data: list[float]


def make_app(name: str) -> FastAPI:
    model, shape, app = models.build(torch, name), models.SHAPES[name], FastAPI()

    def answer(x):
        with torch.inference_mode():
            return {"data": model(x.view(shape)).flatten().tolist()}

    if name == "mlp":

        @app.post("/predict")
        def predict_numbers(numbers: Numbers):
            return answer(torch.tensor(numbers.data))
    else:

        @app.post("/predict")
        async def predict_bytes(request: Request):
            body = bytearray(await request.body())
            return await run_in_threadpool(lambda: answer(torch.frombuffer(body, dtype=torch.float32)))

    return app


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    uvicorn.run(
        make_app(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False
    )
