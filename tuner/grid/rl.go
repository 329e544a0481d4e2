package grid

// rlPresets returns layers of recurrent reinforcement learning: sequences hold several episodes, so
// they begin anew at some steps. Batches are environments or replayed sequences.
func rlPresets() []Preset {
	const source = "the benchmarks of TorchRL (pytorch/rl#3816 and #4160), CleanRL's ppo_atari_lstm.py, IMPALA (arXiv:1802.01561) and dreamerv3/configs.yaml, read in November 2026; 64 units and 512 steps are rnnbench's"
	return []Preset{
		{
			Name: "rl", Doc: "layers of agents, with and without episodes that end within sequences; heads are the blocks of a block GRU",
			Source: source,
			Blocks: []map[string]string{
				agent("gru,lstm", "256", "128", "128"),              // TorchRL
				agent("lstm", "128", "8", "128", "input", "512"),    // CleanRL, PPO
				agent("lstm", "256", "32", "100"),                   // IMPALA
				agent("gru,lstm", "64", "256", "16"),                // many environments, few steps
				agent("gru", "256", "16", "512"),                    // long sequences
				agent("gru", "512", "16", "64,512", "heads", "8"),   // TorchRL, a block GRU
				agent("gru", "2048,4096", "16", "64", "heads", "8"), // DreamerV3 of 12 and 50 million parameters
			},
		},
		{
			Name: "rl-quick", Doc: "small layers of agents, with and without episodes that end within sequences",
			Source: source,
			Blocks: []map[string]string{
				agent("gru,lstm", "64", "16", "32"),
				agent("gru", "128", "16", "16", "heads", "8"),
			},
		},
	}
}

// agent returns a layer in both passes, without resets and with two rates of them.
func agent(cell, hidden, batch, steps string, more ...string) map[string]string {
	block := map[string]string{"cell": cell, "pass": "forward,train", "hidden": hidden, "batch": batch, "steps": steps, "resets": "none,3%,10%"}
	for i := 0; i < len(more); i += 2 {
		block[more[i]] = more[i+1]
	}
	return block
}
