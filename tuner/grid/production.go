package grid

// productionPresets returns layers of programs that people run, as their repositories configure them.
func productionPresets() []Preset {
	const source = "the configurations of Dorado, NeMo, pyannote.audio, deepspeech.pytorch, EnCodec, RNNoise, LPCNet, TorchRL, RecurrentGemma, Silero VAD and xLSTM, read in November 2026"
	return []Preset{
		{
			Name: "production", Doc: "layers of basecallers, speech, audio, reinforcement learning and language models, inference",
			Source: source, Blocks: production("96,384,1024", "128,512", "1667", "1024", "2048", "1024", "500"),
		},
		{
			Name: "production-quick", Doc: "the same layers with fewer sizes and steps",
			Source: source, Blocks: production("96,384", "96", "100", "128", "256", "256", "100"),
		},
	}
}

// production returns the layers. hidden, batch and steps are of basecallers, long and longer are steps
// of language models, units and frames are of a speech recogniser.
func production(hidden, batch, steps, long, longer, units, frames string) []map[string]string {
	layer := func(cell, hidden, layers, batch, steps, precision string, more ...string) map[string]string {
		block := map[string]string{"cell": cell, "pass": "forward", "hidden": hidden, "layers": layers, "batch": batch, "steps": steps, "precision": precision}
		for i := 0; i < len(more); i += 2 {
			block[more[i]] = more[i+1]
		}
		return block
	}
	return []map[string]string{
		layer("lstm", hidden, "5", batch, steps, "fp16", "direction", "alternate"),         // Dorado and Bonito, basecallers
		layer("lstm", "640", "2", "16", "1", "bf16", "calls", "1000"),                      // NeMo, the prediction network of an RNN-T
		layer("lstm", "128", "4", "32", "589", "fp32", "direction", "both", "input", "60"), // pyannote, segmentation of speakers
		layer("lstm", "512", "2", "1", "75", "fp32"),                                       // EnCodec, a second of audio
		layer("gru", "256", "3", "1", "100", "fp32"),                                       // RNNoise, a second of audio
		layer("gru", "384", "1", "1", "160", "fp32"),                                       // LPCNet, a frame of samples
		layer("lstm,gru", "256", "1", "128", "128", "fp32"),                                // TorchRL, an agent
		layer("mingru", "128", "4", "1024", "64", "fp32"),                                  // PufferLib, an agent
		layer("rg-lru", "2560", "1", "1", longer, "bf16"),                                  // RecurrentGemma
		layer("lstm", "128", "1", "1", "1", "fp32", "calls", "1000"),                       // Silero, detection of voice
		layer("lstm", "1024", "2", "32", "100", "fp32", "projection", "512"),               // LSTMP, a second of speech
		layer("slstm", "768", "1", "16", long, "bf16", "heads", "4"),                       // xLSTM
		// deepspeech.pytorch, ten seconds of speech: batches are packed, by pack_padded_sequence
		layer("lstm", units, "5", "64", frames, "fp32", "direction", "both", "input", "1312", "lengths", "full,uniform:75%,uniform:50%"),
		layer("lstm,gru", "256", "1", "128", "128", "fp32", "resets", "3%"), // TorchRL, with episodes that end
		layer("mingru", "128", "4", "1024", "64", "fp32", "resets", "3%"),   // PufferLib, with episodes that end
	}
}
