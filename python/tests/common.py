"""What the tests share. They need librnnbench.so: `make lib`."""

import os
import sys
import unittest

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import rnnbench_torch as ours  # noqa: E402

torch.set_num_threads(2)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def close(self, got, want, what="", tolerance=1e-5):
        """Checks that tensors differ by no more than the tolerance, relative to the largest value."""
        self.assertEqual(got.shape, want.shape, what)
        error = (got.double() - want.double()).abs().max().item()
        self.assertLessEqual(error, tolerance * max(want.abs().max().item(), 1e-3), what)

    def same(self, theirs, fast, input, hx=None, tolerance=1e-5, unused=()):
        """Checks outputs, states and all gradients of one training pass and outputs without gradients."""
        names, want = passes(theirs, input, hx, unused)
        _, got = passes(fast, input, hx, unused)
        for name, g, w in zip(names, got, want):
            self.close(g, w, name, tolerance)
        with torch.no_grad():
            for name, g, w in zip(names, flat(fast(input, hx)), want):
                self.close(g, w, name + " without gradients", tolerance)


def flat(result):
    """Returns the tensors of what a module returned."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, torch.nn.utils.rnn.PackedSequence):
        return [result.data]
    return [t for part in result for t in flat(part)]


def passes(module, input, hx=None, unused=()):
    """Returns names and values of outputs, and of gradients of the sum of all outputs but the unused ones times fixed weights."""
    def leaf(t):
        return t.detach().clone().requires_grad_()

    packed = isinstance(input, torch.nn.utils.rnn.PackedSequence)
    x = leaf(input.data) if packed else leaf(input)
    states = hx if hx is None else tuple(map(leaf, hx)) if isinstance(hx, tuple) else leaf(hx)
    outputs = flat(module(input._replace(data=x) if packed else x, states))
    generator = torch.Generator().manual_seed(2)
    loss = sum((o * torch.randn(o.shape, generator=generator).to(o.device)).sum() for i, o in enumerate(outputs) if i not in unused)
    leaves = {"grad_input": x}
    leaves.update((f"grad_state{i}", h) for i, h in enumerate(() if states is None else flat(states)))
    leaves.update(("grad_" + name, p) for name, p in module.named_parameters())
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    names = ["output"] + [f"state{i}" for i in range(len(outputs) - 1)] + list(leaves)
    return names, [o.detach() for o in outputs] + list(gradients)
