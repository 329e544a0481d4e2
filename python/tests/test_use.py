"""Modules in use: training, several calls, copies, threads."""

import copy
import gc
import io
import pickle
import threading
import unittest
from unittest import mock

import torch

from common import Case, flat, ours, passes
from rnnbench_torch.library import Stack


def pair(*sizes, **settings):
    """Returns a torch.nn.LSTM and ours with equal parameters of their own."""
    module = torch.nn.LSTM(*sizes, **settings)
    return module, ours.LSTM.from_torch(copy.deepcopy(module))


class Training(Case):
    def train(self, step):
        """Checks that both modules have the same losses over some steps, and evaluate alike between them."""
        histories = []
        for module in pair(5, 7, 2):
            torch.manual_seed(3)
            update = step(module)
            losses = []
            for _ in range(6):
                x = torch.randn(4, 3, 5)
                loss = module(x)[0].sub(0.3).square().mean()
                module.zero_grad()
                loss.backward()
                update()
                with torch.no_grad():
                    losses += [loss.item(), module(x)[0].square().mean().item()]
            histories.append(torch.tensor(losses))
        self.assertGreater(histories[0][0] - histories[0][-2], 0)
        self.close(histories[1], histories[0], "losses")

    def test_optimiser(self):
        self.train(lambda module: torch.optim.Adam(module.parameters(), 0.02).step)

    def test_data(self):
        """An update through .data changes no version."""
        def step(module):
            def update():
                for p in module.parameters():
                    p.data.add_(p.grad, alpha=-0.5)
            return update
        self.train(step)

    def test_new_data(self):
        def step(module):
            def update():
                for p in module.parameters():
                    p.data = p.data - 0.5 * p.grad
            return update
        self.train(step)

    def test_weight_norm(self):
        module, fast = pair(5, 7)
        for m in module, fast:
            torch.nn.utils.weight_norm(m, "weight_hh_l0")
        for _ in range(2):
            self.same(module, fast, torch.randn(4, 3, 5))
            with torch.no_grad():
                module.weight_hh_l0_g.mul_(1.5)
                fast.weight_hh_l0_g.mul_(1.5)

    def test_flatten_parameters(self):
        module, fast = pair(5, 7)
        x = torch.randn(4, 3, 5)
        with torch.no_grad():
            fast(x)
            for m in module, fast:
                m.weight_hh_l0.data.mul_(2)
                m.flatten_parameters()
            self.close(fast(x)[0], module(x)[0])

    def test_frozen(self):
        module, fast = pair(5, 7)
        x = torch.randn(4, 3, 5)
        for m in module, fast:
            m.requires_grad_(False)
        self.assertFalse(fast(x)[0].requires_grad)
        x.requires_grad_()
        grads = [torch.autograd.grad(m(x)[0].square().sum(), x)[0] for m in (module, fast)]
        self.close(grads[1], grads[0])

    def test_inference_mode(self):
        module, fast = pair(5, 7)
        with torch.inference_mode():
            x = torch.randn(4, 3, 5)
            self.close(fast(x)[0], module(x)[0])
            made = ours.LSTM(5, 7)
            for _ in range(2):
                made.load_state_dict(module.state_dict())
                self.close(made(x)[0], module(x)[0])
                module.weight_hh_l0.mul_(1.5)


class Calls(Case):
    def test_several_before_backward(self):
        module, fast = pair(5, 7, 2)
        xs = [torch.randn(4, 3, 5) for _ in range(4)]
        for order in (0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1):
            for m in module, fast:
                m.zero_grad()
                losses = [m(x)[0].square().sum() for x in xs]
                for i in order:
                    (losses[i] * (i + 1)).backward()
            for (name, p), q in zip(module.named_parameters(), fast.parameters()):
                self.close(q.grad, p.grad, name)

    def test_one_graph(self):
        module, fast = pair(5, 5)
        x = torch.randn(4, 3, 5)
        for m in module, fast:
            output, states = m(x)
            output, states = m(output, states)
            (output.square().sum() + states[1].sum()).backward()
        for (name, p), q in zip(module.named_parameters(), fast.parameters()):
            self.close(q.grad, p.grad, name)

    def test_dropped_graphs(self):
        _, fast = pair(5, 7)
        for _ in range(20):
            fast(torch.randn(4, 3, 5))
        gc.collect()
        fast(torch.randn(4, 3, 5))[0].sum().backward()
        stack, = fast._stacks.values()
        self.assertEqual(sum(map(len, stack.free.values())) + len(stack.dropped), 1)

    def test_module_before_graph(self):
        module, fast = pair(5, 7)
        x = torch.randn(4, 3, 5, requires_grad=True)
        loss = fast(x)[0].sum()
        del fast
        gc.collect()
        self.close(torch.autograd.grad(loss, x)[0], torch.autograd.grad(module(x)[0].sum(), x)[0])

    def test_many_shapes(self):
        module, fast = pair(5, 7)
        with mock.patch.object(Stack, "keep", 3), torch.no_grad():
            for steps in (1, 2, 3, 4, 5, 1, 2, 5):
                x = torch.randn(steps, 2, 5)
                self.close(fast(x)[0], module(x)[0])
            stack, = fast._stacks.values()
            self.assertEqual([key[1] for key in stack.free], [1, 2, 5])

    def test_results_are_not_reused(self):
        _, fast = pair(5, 7)
        with torch.no_grad():
            first = fast(torch.ones(4, 3, 5))
            before = [t.clone() for t in flat(first)]
            fast(torch.zeros(4, 3, 5))
        for a, b in zip(flat(first), before):
            self.assertTrue(torch.equal(a, b))

    def test_threads(self):
        module, fast = pair(5, 7)
        xs = [torch.randn(4, 3, 5) for _ in range(8)]
        want = [passes(module, x) for x in xs]
        results = [None] * len(xs)

        def run(i):
            for _ in range(5):
                results[i] = passes(fast, xs[i])
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(xs))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for got, (names, values) in zip(results, want):
            for name, g, w in zip(names, got[1], values):
                self.close(g, w, name)

    def test_tune(self):
        module, fast = pair(5, 7)
        self.assertEqual(list(fast.tune(3, 4)), ["forward", "train"])
        stack, = fast._stacks.values()
        tuned = {plan.handle for plans in stack.free.values() for plan in plans}
        self.same(module, fast, torch.randn(4, 3, 5))
        self.assertEqual({plan.handle for plans in stack.free.values() for plan in plans}, tuned)


class Copies(Case):
    def copied(self, copied):
        module, fast = pair(5, 7, 2, batch_first=True)
        x = torch.randn(3, 4, 5)
        fast(x)
        other = copied(fast)
        with torch.no_grad():
            for p in fast.parameters():
                p.zero_()
        self.same(module, other, x)

    def test_deepcopy(self):
        self.copied(copy.deepcopy)

    def test_pickle(self):
        self.copied(lambda m: pickle.loads(pickle.dumps(m)))

    def test_save(self):
        def saved(module):
            file = io.BytesIO()
            torch.save(module.state_dict(), file)
            file.seek(0)
            other = ours.LSTM(5, 7, 2, batch_first=True)
            other.load_state_dict(torch.load(file))
            return other
        self.copied(saved)

    def test_dtype_and_back(self):
        module, fast = pair(5, 7)
        fast(torch.randn(4, 3, 5))
        self.assertEqual(fast.half()(torch.randn(4, 3, 5).half())[0].dtype, torch.float16)
        fast.float().load_state_dict(module.state_dict())
        self.same(module, fast, torch.randn(4, 3, 5))

    def test_layer(self):
        layer = ours.Layer("slstm", 5, 7)
        x = torch.randn(4, 3, 5)
        self.close(copy.deepcopy(layer)(x)[0], layer(x)[0])
        self.close(pickle.loads(pickle.dumps(layer))(x)[0], layer(x)[0])

    def test_shared_parameters(self):
        module = torch.nn.GRU(5, 7)
        fast = ours.GRU.from_torch(module)
        self.assertIs(fast.weight_ih_l0, module.weight_ih_l0)
        self.assertIs(fast.eval().training, False)
        self.assertIs(ours.GRU.from_torch(module.eval()).training, False)


if __name__ == "__main__":
    unittest.main()
