import torch

__version__ = "0.0"


def steps(gates, tokens):
    """x[t] = gates[t]·x[t-1] + tokens[t] over the last axis."""
    assert gates.shape == tokens.shape and gates.dim() == 3 and gates.dtype == tokens.dtype
    assert gates.is_contiguous() and tokens.is_contiguous()
    x, states = torch.zeros_like(tokens[..., 0]), []
    for a, b in zip(gates.unbind(-1), tokens.unbind(-1)):
        x = a * x + b
        states.append(x)
    return torch.stack(states, -1)
