"""What the rivals that run in PyTorch share: the protocol, clocks, CUDA graphs.

A rival is a subclass of Rival. load makes the inputs of a point, choose sets the step that is timed,
and arrays has its answer. docs/rivals.md describes the protocol.
"""

import json
import os
import sys
import time

# What libraries print goes to standard error: standard output is the protocol's.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

absent = None
try:
    import numpy as np
    import torch
except (ImportError, OSError) as e:
    torch = np = None
    absent = f"PyTorch or NumPy is not there for {sys.executable}: {e}"


class Unsupported(Exception):
    """Work that a rival declines, with the reason."""


def gpus():
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def devices():
    return ["cpu"] + [f"cuda:{i}" for i in range(gpus())]


def precisions():
    return ["fp32", "bf16", "fp16"] + (["tf32"] if gpus() else [])


def knobs(*offers):
    """Knobs of a hello, each (name, doc, values, whether it is there)."""
    return [{"name": name, "doc": doc, "values": values} for name, doc, values, here in offers if here]


class Rival:
    """The device, and the pass that was prepared last."""

    stream = None

    def said(self):
        """The name and version of what computes, for reasons why it declines."""
        return f"PyTorch {torch.__version__}"

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
            self.load(q["point"], q["data"])
            self.choose(q["knobs"])
        except Unsupported as e:
            return {"unsupported": str(e)}
        except (NotImplementedError, RuntimeError) as e:
            text = str(e)
            if isinstance(e, NotImplementedError) or "not implemented" in text or "not supported" in text:
                return {"unsupported": f"{self.said()}: {text.splitlines()[0]}"}
            raise
        return {"ok": True}

    def release(self):
        """Drops what the last pass holds: two large ones may not fit."""
        self.step = self.graph = None
        if self.gpu:
            torch.cuda.empty_cache()

    def precision(self, p):
        """The type of values in a point's precision. It sets that of fp32 products."""
        if p["precision"] == "tf32" and not self.gpu:
            raise Unsupported("tf32 needs a GPU")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = p["precision"] == "tf32"
        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(p["precision"], torch.float32)

    def settle(self, graph=False, times=1):
        """Runs the step until all is compiled, and captures it in a CUDA graph if asked to."""
        if not graph:
            for _ in range(times):
                self.step()
            self.wait()
            return
        if not self.gpu:
            raise Unsupported("a CUDA graph needs a GPU")
        try:
            self.capture()
        except RuntimeError as e:
            if "captur" in str(e):
                raise Unsupported(f"{self.said()} cannot capture this pass: {str(e).splitlines()[0]}")
            raise

    def side(self):
        """The stream that graphs are captured on."""
        if self.stream is None:
            self.stream = torch.cuda.Stream()
        return self.stream

    def capture(self):
        side = self.side()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=side):
            self.step()
        self.step = self.graph.replay
        self.step()
        self.wait()

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
        np.savez(m["read"], **{name: np.ascontiguousarray(t.detach().float().cpu().numpy()) for name, t in self.arrays().items()})
        return {"ok": True}


def serve(rival):
    """Answers requests until the last."""
    for line in sys.stdin:
        m = json.loads(line)
        verb = next((v for v in ("hello", "open", "prepare", "run", "call", "read") if v in m), None)
        if verb is None:  # close
            return
        try:
            answer = getattr(rival, verb)(m)
        except Exception as e:  # the point is lost, and rnnbench ends this process
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), file=answers, flush=True)
