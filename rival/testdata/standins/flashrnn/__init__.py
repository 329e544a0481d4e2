"""A stand-in of FlashRNN: its equations step by step, in PyTorch. It checks that arrays come in the layout
that each backend works on, so that the package would permute nothing."""

import torch

BACKENDS = {  # the input, recurrent weights, biases and states, as each works on them
    "cuda_fused": ("TBHDG", "HDGP", "HDG", "STBHD"),
    "cuda": ("TBHGD", "HPGD", "HGD", "STBHD"),
    "triton_fused": ("BTGHD", "GHDP", "GHD", "TSBHD"),
}
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class FlashRNNConfig:
    def __init__(self, *, head_dim, num_heads, batch_size, function, backend, dtype, input_shape, output_shape):
        self.head_dim, self.num_heads, self.batch_size, self.function, self.dtype = head_dim, num_heads, batch_size, function, dtype
        assert (input_shape, output_shape) == ("TBGHD", "SBTHD")
        self._internal_input_shape, self._internal_recurrent_shape, self._internal_bias_shape, self._internal_output_shape = BACKENDS[backend]


def lstm(x, r, b, s):
    i, f, z, o = (x + r + b).unbind(1)
    c = torch.sigmoid(f) * s[1] + torch.sigmoid(i) * torch.tanh(z)
    return [torch.sigmoid(o) * torch.tanh(c), c]


def slstm(x, r, b, s):
    i, f, z, o = (x + r + b).unbind(1)
    log_f = torch.nn.functional.logsigmoid(f) + s[3].detach()
    m = torch.where(s[2] == 0, i, torch.maximum(i, log_f)).detach()
    enter, keep = torch.exp(i - m), torch.exp(log_f - m)
    c, n = keep * s[1] + enter * torch.tanh(z), keep * s[2] + enter
    n = n + (n.clamp(min=1) - n).detach()  # its gradient does not know the bound
    return [torch.sigmoid(o) * c / n, c, n, m]


def gru(x, r, b, s):
    reset, z = torch.sigmoid(x[:, 0] + r[:, 1] + b[1]), torch.sigmoid(x[:, 1] + r[:, 2] + b[2])
    return [z * s[0] + (1 - z) * torch.tanh(x[:, 2] + b[3] + reset * (r[:, 0] + b[0]))]


def elman(x, r, b, s):
    return [torch.tanh(x[:, 0] + r[:, 0] + b[0])]


def flashrnn(Wx, R, b, states, config):
    shapes = config._internal_input_shape, config._internal_recurrent_shape, config._internal_bias_shape
    for t, passed, own in zip((Wx, R, b), ("TBGHD", "GHDP", "GHD"), shapes):
        assert t.dtype == TYPES[config.dtype] and t.permute([passed.index(d) for d in own]).is_contiguous(), f"{passed} is not kept as {own}"
    assert Wx.shape[1] == config.batch_size and R.shape[1:] == (config.num_heads, config.head_dim, config.head_dim) and states.shape[2] == 1
    cell, all_states = globals()[config.function], []
    now = list(states[:, :, 0].float())
    for x in Wx.float():
        product = torch.einsum("ghdp,bhp->bghd", R.float(), now[0])
        new = torch.stack(cell(x, product, b.float(), now)).to(Wx.dtype)  # kept in the type of the inputs
        all_states.append(new)
        now = list(new.float())
    own = config._internal_output_shape
    kept = torch.stack(all_states).permute(["TSBHD".index(d) for d in own]).contiguous()
    return kept.permute([own.index(d) for d in "SBTHD"]), kept.select(own.index("T"), -1)
