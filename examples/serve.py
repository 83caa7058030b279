"""A model behind HTTP: concurrent requests share batches, with limits, health and metrics.

    python serve.py                                    # trains for a moment, then serves on 127.0.0.1:8000
    curl -d '{"pixels": [0, 0.5, ...]}' 127.0.0.1:8000/predict    # 64 numbers from 0 to 1

Needs starlette and uvicorn.
"""

import asyncio
import contextlib
import json
import time

from classify_digits import make_model, train
from common import arguments
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

import rushlight as torch
from rushlight.demo import digits
from rushlight.utils.data import DataLoader

LARGEST_BATCH = 32
WAIT = 0.005  # seconds to wait for more requests
LONGEST_QUEUE = 256
LARGEST_BODY = 64 * 1024


class Batcher:
    """Runs the model on what came in meanwhile."""

    def __init__(self, model):
        self.model = model.eval()
        self.queue = asyncio.Queue(LONGEST_QUEUE)
        self.requests = self.batches = self.refused = 0
        self.seconds = 0.0

    async def predict(self, image):
        """The probabilities for an image of shape (1, 8, 8).

        Raises:
            asyncio.QueueFull: too many requests are waiting.
        """
        done = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((image, done))
        return await done

    async def run(self):
        while True:
            batch = [await self.queue.get()]
            until = time.monotonic() + WAIT
            with contextlib.suppress(asyncio.TimeoutError):
                while len(batch) < LARGEST_BATCH:
                    batch.append(await asyncio.wait_for(self.queue.get(), max(until - time.monotonic(), 0)))
            start = time.monotonic()
            answers = await asyncio.to_thread(self.compute, torch.stack([image for image, _ in batch]))
            self.seconds += time.monotonic() - start
            self.batches += 1
            self.requests += len(batch)
            for (_, done), answer in zip(batch, answers, strict=True):
                if not done.cancelled():
                    done.set_result(answer)

    def compute(self, images):
        with torch.inference_mode():
            return self.model(images).softmax(1).tolist()


def read_image(body):
    """The image of a request.

    Raises:
        ValueError: tells what is wrong with it.
    """
    pixels = body.get("pixels") if isinstance(body, dict) else None
    if not isinstance(pixels, list) or len(pixels) != 64:
        raise ValueError('send {"pixels": [...]} with 64 numbers, row by row')
    if not all(isinstance(p, (int, float)) and 0 <= p <= 1 for p in pixels):
        raise ValueError("pixels are numbers from 0 (white) to 1 (black)")
    return torch.tensor(pixels, dtype=torch.float32).view(1, 8, 8)


def make_app(model):
    batcher = Batcher(model)

    async def predict(request):
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                return JSONResponse({"error": f"at most {LARGEST_BODY} bytes"}, 413)
        try:
            image = read_image(json.loads(body))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        try:
            probabilities = await batcher.predict(image)
        except asyncio.QueueFull:
            batcher.refused += 1
            return JSONResponse({"error": "busy, try again"}, 503, headers={"Retry-After": "1"})
        best = max(range(10), key=probabilities.__getitem__)
        return JSONResponse({"digit": best, "probabilities": probabilities})

    async def health(request):
        return JSONResponse({"status": "ok", "waiting": batcher.queue.qsize()})

    async def metrics(request):
        values = {
            "requests_total": batcher.requests,
            "batches_total": batcher.batches,
            "refused_total": batcher.refused,
            "model_seconds_total": round(batcher.seconds, 6),
            "waiting": batcher.queue.qsize(),
        }
        return PlainTextResponse("".join(f"rushlight_{name} {value}\n" for name, value in values.items()))

    @contextlib.asynccontextmanager
    async def lifespan(app):
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    routes = [
        Route("/predict", predict, methods=["POST"]),
        Route("/health", health),
        Route("/metrics", metrics),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def main():
    import uvicorn

    given = arguments((__doc__ or "").splitlines()[0], steps=300, port=8000)
    torch.manual_seed(0)
    model = make_model()
    train(model, DataLoader(digits.split()[0], batch_size=64, shuffle=True), given.steps)
    uvicorn.run(make_app(model), host="127.0.0.1", port=given.port)


if __name__ == "__main__":
    main()
