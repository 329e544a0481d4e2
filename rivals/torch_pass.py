"""What programs that compute by PyTorch share: a pass with its data, run and timed, eager or as a CUDA graph."""

import time

import numpy as np
import torch

from protocol import Unsupported

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
GRAPH = {"name": "graph", "doc": "1: replay the pass as a CUDA graph", "values": [0, 1]}


def gpus():
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def devices(cpu):
    return ["cpu"] * cpu + [f"cuda:{i}" for i in range(gpus())]


def array(t):
    """A tensor as rnnbench reads it."""
    return np.ascontiguousarray(t.detach().float().cpu().numpy())


class Pass:
    """The device, and the pass that was prepared last. A program says how it loads a point's data and
    what one pass runs:

    load(file)      takes the arrays of an .npz file, when point, dtype and train are set
    choose(knobs)   calls runs() with what one pass runs
    arrays()        the tensors of the answer by name
    """

    name = f"PyTorch {torch.__version__}"

    def open(self, m):
        self.device = torch.device(m["open"])
        self.gpu = self.device.type == "cuda"
        self.threads = m["threads"]
        if self.gpu:
            torch.cuda.set_device(self.device)
        return {"ok": True, "device": torch.cuda.get_device_name(self.device) if self.gpu else "cpu"}

    def prepare(self, m):
        q = m["prepare"]
        self.release()
        try:
            self.set(q["point"])
            with np.load(q["data"]) as file:
                self.load(file)
            self.choose(q["knobs"])
        except (NotImplementedError, RuntimeError) as e:
            text = str(e)
            if isinstance(e, NotImplementedError) or "not implemented" in text or "not supported" in text:
                raise Unsupported(f"{self.name}: {text.splitlines()[0]}") from e
            raise
        return {"ok": True}

    def release(self):
        """Drops what the last pass holds, in all attributes but the device's: two large ones may not fit."""
        for name in set(vars(self)) - {"device", "gpu", "threads"}:
            delattr(self, name)
        if self.gpu:
            torch.cuda.empty_cache()

    def set(self, p):
        """Takes a point."""
        if p["precision"] == "tf32" and not self.gpu:
            raise Unsupported("tf32 needs a GPU")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = p["precision"] == "tf32"
        self.point, self.states = p, p["states"]
        self.train = p["pass"] == "train"
        self.dtype = TYPES.get(p["precision"], torch.float32)
        torch.set_num_threads(self.threads)

    def put(self, values):
        """A tensor of values on the device, in the precision of the point."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device, self.dtype)

    def leaf(self, values):
        """The same as a tensor that training has a gradient of."""
        return self.put(values).requires_grad_(self.train)

    def runs(self, run, leaves, dy):
        """Sets what one pass runs: run returns the output and the last states. Training adds the
        gradients of leaves, given that of the output."""

        def forward():
            with torch.no_grad():
                self.output, self.last = run()

        def train():
            for leaf in leaves:
                leaf.grad = None
            self.output, self.last = run()
            self.output.backward(dy)

        self.step = train if self.train else forward

    def warm(self, times=1):
        """Runs passes until all is compiled."""
        for _ in range(times):
            self.step()
        self.wait()

    def capture(self, warm=3):
        """Has passes replay a CUDA graph, captured after warm passes."""
        if not self.gpu:
            raise Unsupported("a CUDA graph needs a GPU")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(side):
                for _ in range(warm):
                    self.step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step()
        except RuntimeError as e:
            if "captur" in str(e):
                why = f"{self.name} cannot capture this pass: {str(e).splitlines()[0]}"
                raise Unsupported(why, spent=True) from e  # later calls may say that a capture is still going on
            raise
        self.step = self.graph.replay
        self.warm()

    def wait(self):
        if self.gpu:
            torch.cuda.synchronize()

    def run(self, m):
        n, step = m["run"], self.step
        if not self.gpu:
            start = time.perf_counter()
            for _ in range(n):
                step()
            return {"wall_s": time.perf_counter() - start}
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.wait()
        start = time.perf_counter()
        begin.record()
        for _ in range(n):
            step()
        end.record()
        self.wait()
        return {"wall_s": time.perf_counter() - start, "device_s": begin.elapsed_time(end) / 1e3}

    def read(self, m):
        np.savez(m["read"], **{name: array(t) for name, t in self.arrays().items()})
        return {"ok": True}

    def verbs(self, hello):
        return {"hello": lambda _: hello, "open": self.open, "prepare": self.prepare, "run": self.run, "read": self.read}
