import torch


def fused_recurrent_hgrn(x, g, initial_state=None, output_final_state=False, cu_seqlens=None):
    """h[t] = exp(g[t])·h[t-1] + x[t] over the second axis."""
    assert x.shape == g.shape and x.dim() == 3 and initial_state is None and cu_seqlens is None
    h, states = torch.zeros_like(x[:, 0], dtype=torch.float32), []
    for a, b in zip(g.unbind(1), x.unbind(1)):
        h = a.float().exp() * h + b
        states.append(h)
    return torch.stack(states, 1).to(x.dtype), None


def chunk_hgrn(x, g, initial_state=None, output_final_state=False):
    return fused_recurrent_hgrn(x, g, initial_state, output_final_state)
