"""The example and the benchmark."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from common import Case

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


class Programs(Case):
    def run_program(self, name, *arguments):
        command = [sys.executable, os.path.join(HERE, name), *arguments]
        run = subprocess.run(command, env=dict(os.environ, PYTHONPATH=HERE), capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def losses(self, *arguments):
        lines = self.run_program("examples/char_rnn.py", "--hidden", "24", "--iterations", "50", *arguments).splitlines()
        return [float(line.split("loss")[1].split()[0]) for line in lines]

    def test_example(self):
        want, got = self.losses(), self.losses("--fast")
        self.assertEqual(len(got), 5)
        self.assertLess(got[-1], got[0] - 0.2)
        for g, w in zip(got, want):
            self.assertAlmostEqual(g, w, delta=1e-4)

    def test_benchmark(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.jsonl")
            table = self.run_program("benchmark.py", "--seconds", "0.01", "-o", path, "hidden=8,steps=2", "cell=gru,hidden=8,steps=2,layers=2")
            with open(path) as file:
                records = [json.loads(line) for line in file]
        self.assertEqual([r["what"] for r in records], ["forward", "training", "model", "forward", "training", "overhead", "overhead"])
        self.assertEqual(len(table.splitlines()), 1 + len(records))
        for r in records[:5]:
            self.assertGreaterEqual(len(r["ours_seconds"]), 5)
            self.assertIn("technique", r["plans"][0])


if __name__ == "__main__":
    unittest.main()
