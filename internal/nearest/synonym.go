package nearest

import (
	"slices"
	"strings"
)

// synonyms are words that other programs use, each with what it may mean here. What means something
// is the first that exists where the word was written.
var synonyms = map[string][]string{
	// cells, passes, directions, precisions
	"vanilla": {"rnn-tanh"}, "elman": {"rnn-tanh"}, "rnn-cell": {"rnn-tanh"}, "griffin": {"rg-lru"}, "xlstm": {"slstm"},
	"inference": {"forward"}, "infer": {"forward"}, "eval": {"forward"}, "fwd": {"forward"},
	"training": {"train"}, "bptt": {"train"}, "backprop": {"train"}, "bwd": {"train"}, "backward": {"reverse", "train"}, "backwards": {"reverse", "train"},
	"bidirectional": {"both", "direction"}, "bi": {"both", "direction"}, "unidirectional": {"forward", "direction"},
	"float32": {"fp32"}, "float": {"fp32"}, "single": {"fp32"}, "f32": {"fp32"}, "half": {"fp16"}, "float16": {"fp16"}, "f16": {"fp16"}, "bfloat16": {"bf16"},
	// axes and settings
	"hidden-size": {"hidden"}, "units": {"hidden"}, "h": {"hidden"}, "batch-size": {"batch"}, "minibatch": {"batch"}, "bs": {"batch"}, "b": {"batch"},
	"seq-len": {"steps"}, "seqlen": {"steps"}, "sequence-length": {"steps"}, "time-steps": {"steps"}, "timesteps": {"steps"}, "t": {"steps"},
	"num-layers": {"layers"}, "depth": {"layers"}, "l": {"layers"}, "input-size": {"input"}, "features": {"input"}, "i": {"input"}, "classes": {"output"}, "o": {"output"}, "s": {"streams"},
	"proj-size": {"projection"}, "num-heads": {"heads"}, "vocab-size": {"symbols"},
	"dtype": {"precision"}, "mode": {"pass"}, "phase": {"pass"}, "technique": {"impl"}, "implementation": {"impl"}, "backend": {"impl"}, "output-dir": {"out"}, "outdir": {"out"},
	"num-threads": {"threads"}, "jobs": {"threads"}, "cores": {"threads"}, "repeats": {"rounds"}, "repeat": {"rounds"}, "samples": {"rounds"}, "runs": {"rounds"}, "timeout": {"point-timeout"},
	// commands, lists, metrics, efforts
	"bench": {"sweep"}, "benchmark": {"sweep"}, "run": {"sweep"}, "measure": {"sweep"}, "autotune": {"tune"}, "check": {"verify"}, "test": {"verify"}, "diff": {"compare"},
	"ls": {"list"}, "print": {"show"}, "view": {"show"}, "draw": {"plot"}, "chart": {"plot"}, "predict": {"model"}, "profile": {"explain"}, "info": {"doctor"}, "env": {"doctor"},
	"impls": {"techniques"}, "implementations": {"techniques"}, "models": {"cells"}, "gpus": {"devices"}, "dimensions": {"axes"},
	"tflops": {"flops"}, "gflops": {"flops"}, "runtime": {"time"}, "seconds": {"time"}, "ms": {"time"}, "us": {"time"},
	"fast": {"quick"}, "thorough": {"rigorous"},
}

// meaning returns the word that a synonym means among words; "": it is none.
func meaning(word string, words []string) string {
	for _, w := range synonyms[strings.ReplaceAll(strings.ToLower(word), "_", "-")] {
		if slices.Contains(words, w) {
			return w
		}
	}
	return ""
}
