"""Outputs, last states and gradients against those of torch.nn's modules and of equations written in PyTorch."""

import os
import unittest

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence

from common import Case, ours, passes

KINDS = {
    "LSTM": (torch.nn.LSTM, ours.LSTM, {}),
    "GRU": (torch.nn.GRU, ours.GRU, {}),
    "RNN": (torch.nn.RNN, ours.RNN, {}),
    "RNN relu": (torch.nn.RNN, ours.RNN, {"nonlinearity": "relu"}),
}


def states(kind, layers, batch, hidden, projection=0):
    """Returns initial states of a module."""
    h = torch.randn(layers, batch, projection or hidden)
    return (h, torch.randn(layers, batch, hidden)) if kind == "LSTM" else h


class Modules(Case):
    def check(self, input, hidden, *, layers=1, batch=3, steps=6, first=False, only=KINDS, unused=(), **settings):
        for kind in only:
            theirs, fast, more = KINDS[kind]
            with self.subTest(kind=kind, layers=layers, **settings):
                module = theirs(input, hidden, layers, batch_first=first, **settings, **more)
                x = torch.randn(*((batch, steps) if first else (steps, batch)), input)
                hx = states(kind, layers * (1 + module.bidirectional), batch, hidden, module.proj_size)
                self.same(module, fast.from_torch(module), x, hx, unused=unused)
                self.same(module, fast.from_torch(module), x, unused=unused)

    def test_layers(self):
        for layers in (1, 2, 3):
            self.check(5, 7, layers=layers)

    def test_both_directions(self):
        for layers in (1, 2, 3):
            self.check(6, 9, layers=layers, bidirectional=True)

    def test_batch_first(self):
        self.check(5, 7, layers=2, first=True)
        self.check(5, 7, layers=2, first=True, bidirectional=True)

    def test_projection(self):
        for layers, both in (1, False), (2, False), (2, True):
            self.check(5, 9, layers=layers, proj_size=4, bidirectional=both, only=["LSTM"], unused=(1,))  # test_refusals has h_n

    def test_no_bias(self):
        self.check(5, 7, layers=2, bias=False)

    def test_odd_sizes(self):
        self.check(1, 1, batch=1, steps=1)
        self.check(3, 37, batch=5, steps=2)
        self.check(65, 33, batch=1, steps=9)
        self.check(16, 64, batch=17, steps=3, layers=2)

    def test_unbatched(self):
        for kind, (theirs, fast, more) in KINDS.items():
            with self.subTest(kind=kind):
                module = theirs(5, 7, 2, batch_first=True, **more)
                h = torch.randn(2, 7)
                self.same(module, fast.from_torch(module), torch.randn(6, 5), (h, torch.randn(2, 7)) if kind == "LSTM" else h)

    def test_packed(self):
        sequences = [torch.randn(n, 5) for n in (3, 7, 1, 7, 4)]
        padded = torch.nn.utils.rnn.pad_sequence(sequences)
        inputs = {
            "unsorted": pack_sequence(sequences, enforce_sorted=False),
            "sorted": pack_sequence(sorted(sequences, key=len, reverse=True)),
            "one length": pack_padded_sequence(padded, [7] * 5),
        }
        for kind, (theirs, fast, more) in KINDS.items():
            for name, input in inputs.items():
                for both in False, True:
                    with self.subTest(kind=kind, input=name, bidirectional=both):
                        module = theirs(5, 7, 2, bidirectional=both, batch_first=True, **more)
                        quick = fast.from_torch(module)
                        self.same(module, quick, input, states(kind, 2 + 2 * both, 5, 7))
                        got, want = quick(input)[0], module(input)[0]
                        self.assertTrue(torch.equal(got.batch_sizes, want.batch_sizes))
                        self.assertIs(got.unsorted_indices, want.unsorted_indices)

    def test_strided_memory(self):
        module = torch.nn.LSTM(5, 7, batch_first=True)
        x = torch.randn(6, 3, 10).transpose(0, 1)[..., ::2]
        hx = torch.randn(1, 7, 3).transpose(1, 2), torch.randn(1, 1, 7).expand(1, 3, 7)
        self.same(module, ours.LSTM.from_torch(module), x, hx)

    def test_some_gradients(self):
        module = torch.nn.LSTM(5, 7, 2)
        module.weight_hh_l0.requires_grad_(False)
        fast = ours.LSTM.from_torch(module)
        x = torch.randn(6, 3, 5)
        for outputs in (lambda o, s: o.sum(), lambda o, s: s[0].square().sum(), lambda o, s: s[1].square().sum(), lambda o, s: o[-1].sum() + s[1].sum()):
            for m in module, fast:
                m.zero_grad()
                outputs(*m(x)).backward()
                grads = {n: p.grad.clone() for n, p in m.named_parameters() if p.grad is not None}
                if m is module:
                    want = grads
            self.assertEqual(grads.keys(), want.keys())
            self.assertNotIn("weight_hh_l0", grads)
            for name in want:
                self.close(grads[name], want[name], name)

    def test_states_dict_and_constructor(self):
        for kind, (theirs, fast, more) in KINDS.items():
            module, quick = theirs(4, 6, 2, bidirectional=True, **more), fast(4, 6, 2, bidirectional=True, **more)
            quick.load_state_dict(module.state_dict())
            module.load_state_dict(quick.state_dict())
            self.assertIsInstance(quick, theirs)
            self.assertEqual(list(module.state_dict()), list(quick.state_dict()))
            x = torch.randn(3, 2, 4)
            self.close(quick(x)[0], module(x)[0], kind)


class Precisions(Case):
    def test_half(self):
        for dtype, tolerance in (torch.float16, 4e-3), (torch.bfloat16, 3e-2):
            with self.subTest(dtype=dtype):
                module = torch.nn.LSTM(16, 32, 2).to(dtype)
                fast = ours.LSTM.from_torch(module)
                x = torch.randn(5, 4, 16, dtype=dtype)
                exact = torch.nn.LSTM(16, 32, 2)
                exact.load_state_dict(module.state_dict())
                _, want = passes(exact, x.float())
                names, got = passes(fast, x)
                for name, g, w in zip(names, got, want):
                    self.assertEqual(g.dtype, dtype, name)
                    self.close(g, w, name, tolerance)

    def test_autocast(self):
        module = torch.nn.LSTM(16, 32)
        fast = ours.LSTM.from_torch(module)
        x = torch.randn(5, 4, 16)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output, _ = fast(x)
        self.assertEqual(output.dtype, torch.bfloat16)
        output.float().sum().backward()
        self.assertEqual(fast.weight_hh_l0.grad.dtype, torch.float32)
        self.close(output, module(x)[0], "output", 3e-2)

    def test_given_precision(self):
        module = torch.nn.LSTM(16, 32)
        output, _ = ours.LSTM.from_torch(module, precision="bf16")(torch.ones(5, 4, 16))
        self.assertEqual(output.dtype, torch.float32)
        self.close(output, module(torch.ones(5, 4, 16))[0], "output", 3e-2)


class Cells(Case):
    def test_same_as_torch(self):
        module = torch.nn.LSTM(5, 7, 2, bidirectional=True)
        layer = ours.Layer("lstm", 5, 7, 2, bidirectional=True)
        layer.load_state_dict(module.state_dict())
        self.same(module, layer, torch.randn(6, 3, 5), states("LSTM", 4, 3, 7))

    def test_slstm(self):
        layer = ours.Layer("slstm", 5, 7)
        x, h = torch.randn(6, 3, 5), tuple(torch.randn(1, 3, 7).abs() + k for k in range(4))
        self.same(Equations(layer, slstm), layer, x, h)

    def test_peepholes(self):
        layer = ours.Layer("lstm-peephole", 5, 7)
        self.same(Equations(layer, peephole), layer, torch.randn(6, 3, 5), states("LSTM", 1, 3, 7))

    def test_file(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cells", "mgu.cell")
        layer = ours.Layer(path, 5, 7, 2)
        x = torch.randn(6, 3, 5, requires_grad=True)
        output, last = layer(x)
        self.assertEqual((output.shape, last.shape), ((6, 3, 7), (2, 3, 7)))
        output.sum().backward()
        self.assertTrue(all(p.grad.abs().sum() > 0 for p in layer.parameters()))

    def test_no_bias(self):
        layer = ours.Layer("lstm", 5, 7, bias=False)
        module = torch.nn.LSTM(5, 7, bias=False)
        layer.load_state_dict(module.state_dict())
        self.same(module, layer, torch.randn(6, 3, 5))


class Equations(torch.nn.Module):
    """One layer step by step, with the parameters of a Layer."""

    def __init__(self, layer, step):
        super().__init__()
        for name, parameter in layer.named_parameters():
            self.register_parameter(name, parameter)
        self.step = step

    def forward(self, x, states):
        states, outputs = [h[0] for h in states], []
        for input in x:
            gates = input @ self.weight_ih_l0.t() + states[0] @ self.weight_hh_l0.t() + self.bias_ih_l0 + self.bias_hh_l0
            states = self.step(self, gates.chunk(4, 1), *states)
            outputs.append(states[0])
        return torch.stack(outputs), tuple(h[None] for h in states)


def slstm(self, gates, h, c, n, m):
    i, f, z, o = gates
    f = torch.nn.functional.logsigmoid(f) + m
    m = torch.maximum(f, i).detach()  # h does not depend on it
    i, f = (i - m).exp(), (f - m).exp()
    c, n = f * c + i * z.tanh(), f * n + i
    return o.sigmoid() * c / n, c, n, m


def peephole(self, gates, h, c):
    i, f, g, o = gates
    p = self.peephole_l0
    c = (f + p[1] * c).sigmoid() * c + (i + p[0] * c).sigmoid() * g.tanh()
    return (o + p[2] * c).sigmoid() * c.tanh(), c


if __name__ == "__main__":
    unittest.main()
