"""A language model of characters: embedding, two LSTM layers and a linear layer, trained with Adam.

    python3 char_rnn.py [--fast] [--device cuda] [text]
"""

import argparse
import time

import torch
from torch import nn


class CharRNN(nn.Module):
    def __init__(self, symbols, hidden, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(symbols, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers)
        self.decoder = nn.Linear(hidden, symbols)

    def forward(self, symbols, states=None):
        output, states = self.lstm(self.embedding(symbols), states)
        return self.decoder(output), states


def batches(text, batch, steps):
    """Yields inputs and targets of steps × batch symbols, forever: each column goes on where it stopped."""
    columns = text[: len(text) // batch * batch].view(batch, -1).t().contiguous()
    while True:
        for at in range(0, len(columns) - steps, steps):
            yield columns[at : at + steps], columns[at + 1 : at + steps + 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default=__file__, help="file to learn, by default this one")
    parser.add_argument("--fast", action="store_true", help="use rnnbench's LSTM")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=32, help="characters of a training step")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    torch.manual_seed(1)
    text = open(arguments.text, "rb").read()
    symbols = sorted(set(text))
    text = torch.tensor([symbols.index(c) for c in text], device=arguments.device)
    model = CharRNN(len(symbols), arguments.hidden).to(arguments.device)
    if arguments.fast:
        import rnnbench_torch

        model.lstm = rnnbench_torch.LSTM.from_torch(model.lstm)
    optimizer = torch.optim.Adam(model.parameters(), 0.005)

    start, states = time.perf_counter(), None
    for i, (input, target) in zip(range(1, arguments.iterations + 1), batches(text, arguments.batch, arguments.steps)):
        logits, states = model(input, states)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        states = tuple(h.detach() for h in states)
        if i % 10 == 0:
            speed = i * input.numel() / (time.perf_counter() - start)
            print(f"iteration {i:4}  loss {loss.item():.5f}  {speed:.0f} characters/s")


if __name__ == "__main__":
    main()
