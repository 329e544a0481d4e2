"""What is not done is refused with a sentence."""

import os
import subprocess
import sys
import unittest

import torch

from common import Case, ours


class Refusals(Case):
    def refused(self, sentence, call, kind=NotImplementedError):
        with self.assertRaisesRegex(kind, sentence):
            call()

    def test_dropout(self):
        fast = ours.LSTM(5, 7, 2, dropout=0.5)
        x = torch.randn(4, 3, 5)
        self.refused("dropout between layers in training: use torch.nn.LSTM", lambda: fast(x))
        self.assertEqual(fast.eval()(x)[0].shape, (4, 3, 7))

    def test_dtypes(self):
        for dtype in torch.float64, torch.complex64:
            self.refused(f"not {dtype}: use torch.nn.LSTM", lambda: ours.Layer("gru", 5, 7).to(dtype)(torch.zeros(4, 3, 5, dtype=dtype)))
        self.refused("input is torch.float16 and the parameters are torch.float32: convert one", lambda: ours.LSTM(5, 7)(torch.zeros(4, 3, 5).half()), RuntimeError)

    def test_devices(self):
        self.refused("cpu and cuda, not meta: use torch.nn.LSTM", lambda: ours.LSTM(5, 7, device="meta")(torch.zeros(4, 3, 5, device="meta")))

    def test_gradient_of_projected_state(self):
        _, (h, c) = ours.LSTM(5, 7, proj_size=3)(torch.randn(4, 3, 5))
        self.refused("no gradient of h_n of this layer: use torch.nn.LSTM", (h.sum() + c.sum()).backward)

    def test_double_backward(self):
        x = torch.randn(4, 3, 5, requires_grad=True)
        grad, = torch.autograd.grad(ours.LSTM(5, 7)(x)[0].square().sum(), x, create_graph=True)
        self.refused("once_differentiable", lambda: grad.sum().backward(), RuntimeError)

    def test_second_backward(self):
        loss = ours.LSTM(5, 7)(torch.randn(4, 3, 5))[0].sum()
        loss.backward(retain_graph=True)
        self.refused("the backward pass once.*torch.nn.LSTM", loss.backward, RuntimeError)

    def test_jit(self):
        fast = ours.LSTM(5, 7)
        self.refused("cannot script rnnbench: use torch.nn.LSTM", lambda: torch.jit.script(fast))
        self.refused("cannot script rnnbench: use torch.nn.LSTM", lambda: torch.jit.script(torch.nn.Sequential(fast)))
        self.refused("cannot trace rnnbench: use torch.nn.LSTM", lambda: torch.jit.trace(fast, torch.randn(4, 3, 5)))

    def test_shapes(self):
        fast = ours.LSTM(5, 7)
        x, h = torch.randn(4, 3, 5), torch.randn(1, 3, 7)
        for sentence, arguments in (
            (r"input must have the shape \(4, 3, 5\), not \(4, 3, 6\)", (torch.randn(4, 3, 6),)),
            ("input must have 2 or 3 dimensions, not 1", (torch.randn(5),)),
            (r"h_0 must have the shape \(1, 3, 7\), not \(1, 2, 7\)", (x, (h[:, :2], h))),
            (r"c_0 must have the shape \(1, 3, 7\), not \(2, 3, 7\)", (x, (h, torch.randn(2, 3, 7)))),
            ("hx must be 2 states, not 1", (x, (h,))),
        ):
            self.refused(sentence, lambda: fast(*arguments), RuntimeError)
        self.assertEqual(fast(x, (h, h))[0].shape, (4, 3, 7))

    def test_empty(self):
        for shape in (0, 3, 5), (4, 0, 5):
            with self.assertRaises(RuntimeError):
                ours.LSTM(5, 7)(torch.zeros(shape))

    def test_parameters(self):
        fast = ours.LSTM(5, 7)
        fast.weight_hh_l0 = torch.nn.Parameter(torch.randn(7, 28).t())
        self.refused(r"weight_hh_l0 is not contiguous: assign its contiguous\(\) copy", lambda: fast(torch.randn(4, 3, 5)), RuntimeError)
        fast.weight_hh_l0 = torch.nn.Parameter(torch.randn(28, 6))
        self.refused(r"weight_hh_l0 must have the shape \(28, 7\), not \(28, 6\)", lambda: fast(torch.randn(4, 3, 5)), RuntimeError)

    def test_names(self):
        self.refused("precision must be fp32, tf32, bf16, fp16 or int8, not fp8", lambda: ours.LSTM(5, 7, precision="fp8"), ValueError)
        self.refused("LSTM.from_torch takes a torch.nn.LSTM, not a GRU", lambda: ours.LSTM.from_torch(torch.nn.GRU(5, 7)), TypeError)
        with self.assertRaisesRegex(RuntimeError, "nosuchcell"):
            ours.Layer("nosuchcell", 5, 7)
        with self.assertRaisesRegex(RuntimeError, "nosuchtechnique"):
            ours.LSTM(5, 7, technique="nosuchtechnique")(torch.randn(4, 3, 5))

    def test_no_library(self):
        run = self.run_python("import rnnbench_torch as r; r.LSTM(5, 7)(torch.zeros(4, 3, 5))", RNNBENCH_LIBRARY="/nonexistent/librnnbench.so")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("run 'make lib'", run.stderr)

    def test_fork(self):
        run = self.run_python("""
import os, rnnbench_torch as r
fast = r.LSTM(5, 7)
x = torch.zeros(4, 3, 5)
loss = fast(x)[0].sum()
if os.fork() == 0:
    for call in lambda: fast(x), loss.backward, lambda: r.GRU(5, 7)(x), lambda: r.Layer("gru", 5, 7):
        try:
            call()
        except RuntimeError as e:
            print(e)
    os._exit(0)
os.wait()
loss.backward()
print("parent works")
""")
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 5, run.stdout + run.stderr)
        for line in lines[:4]:
            self.assertIn("before os.fork and works in the parent alone", line)
        self.assertEqual(lines[4], "parent works")

    def run_python(self, code, **environment):
        here = os.path.dirname(os.path.abspath(__file__))
        environment = dict(os.environ, PYTHONPATH=os.path.join(here, ".."), PYTHONUNBUFFERED="1", **environment)
        return subprocess.run([sys.executable, "-c", "import torch\n" + code], env=environment, capture_output=True, text=True, timeout=300)


if __name__ == "__main__":
    unittest.main()
