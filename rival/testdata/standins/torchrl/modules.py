"""A stand-in of TorchRL's recurrent modules: step by step, by torch.nn's layers."""

import torch


class Module(torch.nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, *, in_keys, out_keys, recurrent_backend, recurrent_compute_dtype, recurrent_matmul_precision, default_recurrent_mode):
        super().__init__()
        assert default_recurrent_mode and recurrent_backend in ("triton", "pad", "scan")
        assert recurrent_backend != "triton" or recurrent_matmul_precision in ("ieee", "tf32", "tf32x3")
        self.in_keys, self.out_keys = in_keys, out_keys
        setattr(self, self.inner, self.layers(input_size, hidden_size, num_layers, batch_first=True))

    def forward(self, given):
        x, begins = given[self.in_keys[0]], given["is_init"]
        batch, steps = x.shape[:2]
        assert begins.dtype == torch.bool and begins.shape == (batch, steps, 1) and x.is_contiguous()
        reset = [given[key] for key in self.in_keys[1:]]  # batch × steps × layers × units
        states, outputs, all_states = [r[:, 0] for r in reset], [], []
        for t in range(steps):
            states = [torch.where(begins[:, t, :, None], r[:, t], s) for r, s in zip(reset, states)]
            first = [s.transpose(0, 1).contiguous() for s in states]
            y, last = getattr(self, self.inner)(x[:, t : t + 1], tuple(first) if len(first) > 1 else first[0])
            states = [s.transpose(0, 1) for s in (last if isinstance(last, tuple) else (last,))]
            outputs.append(y)
            all_states.append(states)
        ends = torch.cat([begins[:, 1:], torch.ones_like(begins[:, :1])], 1)[..., None]
        for key, of_steps in zip(self.out_keys[1:], zip(*all_states)):  # states where a sequence ends, and else 0
            given[key] = torch.stack(of_steps, 1) * ends
        given[self.out_keys[0]] = torch.cat(outputs, 1)
        return given


class GRUModule(Module):
    inner, layers = "gru", torch.nn.GRU


class LSTMModule(Module):
    inner, layers = "lstm", torch.nn.LSTM
