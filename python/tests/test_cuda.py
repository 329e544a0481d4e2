"""Compares layers with torch.nn's on a GPU. Skipped where there is none."""

import unittest

import torch
from common import Case, flat, ours, passes

torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


@unittest.skipUnless(torch.cuda.is_available(), "there is no GPU, or PyTorch is built without CUDA")
class Cuda(Case):
    def test_layers(self):
        for kind, sizes, more, batch in (
            ("LSTM", (5, 7), {}, 3),
            ("LSTM", (64, 128), {"num_layers": 2}, 16),
            ("LSTM", (33, 65), {"bidirectional": True, "batch_first": True}, 4),
            ("GRU", (48, 96), {"num_layers": 2, "bidirectional": True}, 8),
            ("RNN", (16, 512), {}, 1),
            ("LSTM", (40, 64), {"proj_size": 24}, 5),
        ):
            theirs = getattr(torch.nn, kind)(*sizes, **more).cuda()
            fast = getattr(ours, kind).from_torch(theirs)
            input = torch.randn(*((batch, 9) if more.get("batch_first") else (9, batch)), sizes[0], device="cuda")
            with self.subTest(kind=kind, sizes=sizes, **more):
                self.same(theirs, fast, input, unused=() if "proj_size" not in more else (1,), tolerance=2e-5)

    def test_half(self):
        for dtype, tolerance in ((torch.float16, 1e-2), (torch.bfloat16, 6e-2)):
            exact = torch.nn.LSTM(64, 256, 2).double()
            theirs = torch.nn.LSTM(64, 256, 2).cuda()
            theirs.load_state_dict(exact.state_dict())
            fast = ours.LSTM.from_torch(theirs.to(dtype))
            input = torch.randn(20, 8, 64)
            want = flat(exact(input.double()))
            got = flat(fast(input.to("cuda", dtype)))
            for g, w in zip(got, want):
                self.close(g.cpu().float(), w.float(), f"{dtype}", tolerance)

    def test_packed(self):
        theirs = torch.nn.LSTM(12, 40, 2, bidirectional=True).cuda()
        fast = ours.LSTM.from_torch(theirs)
        lengths = torch.tensor([3, 9, 1, 9])
        packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(9, 4, 12, device="cuda"), lengths, enforce_sorted=False)
        _, want = passes(theirs, packed)
        _, got = passes(fast, packed)
        for g, w in zip(got, want):
            self.close(g, w, "packed", 2e-5)

    def test_graph(self):
        """A training step in a CUDA graph, on another stream than the default one."""
        theirs = torch.nn.LSTM(64, 128, 2).cuda()
        fast = ours.LSTM.from_torch(theirs)
        input, given = torch.randn(10, 4, 64, device="cuda", requires_grad=True), torch.randn(10, 4, 128, device="cuda")
        leaves = [input, *fast.parameters()]

        def step(module):
            output, (h, c) = module(input)
            return [output, h, c, *torch.autograd.grad(output, leaves, given)]

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step(fast)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = step(fast)
        for seed in range(3):
            with torch.no_grad():
                torch.manual_seed(seed)
                input.normal_()
            graph.replay()
            torch.cuda.synchronize()
            for g, w in zip(got, step(theirs)):
                self.close(g, w, f"graph, seed {seed}", 2e-5)

    def test_sequence(self):
        """Many calls without waiting: work is in order with the stream's other work."""
        theirs = torch.nn.GRU(32, 64).cuda()
        fast = ours.GRU.from_torch(theirs)
        x = torch.randn(7, 6, 32, device="cuda")
        with torch.no_grad():
            h, g = None, None
            for i in range(50):
                _, h = theirs(x * (i + 1) / 50, h)
                _, g = fast(x * (i + 1) / 50, g)
        self.close(g, h, "50 calls", 5e-5)

    def test_autocast(self):
        theirs = torch.nn.LSTM(32, 64).cuda()
        fast = ours.LSTM.from_torch(theirs)
        input = torch.randn(5, 4, 32, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            output, _ = fast(input)
        self.assertEqual(output.dtype, torch.bfloat16)
        self.close(output.float(), theirs(input)[0], "autocast", 3e-2)


if __name__ == "__main__":
    unittest.main()
