package rnn

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/ctc"
)

// TestCheckEnds: sizes of embeddings, groups and weights that do not fit are refused.
func TestCheckEnds(t *testing.T) {
	good := Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Symbols: 6, Embedding: 2, Output: 6, Groups: 2, Weighted: true}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(p *Problem){
		"symbols is -1":         func(p *Problem) { p.Symbols = -1 },
		"set symbols":           func(p *Problem) { p.Symbols = 0 },
		"at most the input":     func(p *Problem) { p.Embedding = 4 },
		"at least 1":            func(p *Problem) { p.Embedding = 0 },
		"either onehot":         func(p *Problem) { p.OneHot = true },
		"must divide":           func(p *Problem) { p.Groups = 4 },
		"groups is 2":           func(p *Problem) { p.Output = 0 },
		"output layer has weig": func(p *Problem) { p.Output, p.Groups = 0, 0 },
	} {
		p := good
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", p, err, want)
		}
	}
}

// TestTranscript: what does not go with transcripts is refused with the reason.
func TestTranscript(t *testing.T) {
	good := Problem{Cell: cell.LSTM, Pass: Train, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 5, Output: 6, Transcript: 3}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(p *Problem){
		"0 (none)":              func(p *Problem) { p.Transcript = -1 },
		"set output to 2":       func(p *Problem) { p.Output = 1 },
		"set groups to none":    func(p *Problem) { p.Groups = 2 },
		"set weighted to false": func(p *Problem) { p.Weighted = true },
		"set lengths to full":   func(p *Problem) { p.Lengths = "3+5" },
		"set history to none":   func(p *Problem) { p.History = 2 },
		"set calls to none":     func(p *Problem) { p.Calls, p.Pass = 2, Forward },
	} {
		p := good
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", p, err, want)
		}
	}
}

// TestDrawTranscripts: targets fit their steps, also when these are cut.
func TestDrawTranscripts(t *testing.T) {
	p := Problem{Cell: cell.GRU, Pass: Train, Input: 1, Hidden: 1, Layers: 1, Batch: 50, Steps: 9, Output: 3, Transcript: 12}
	d := NewData(p, 1, p.Batch, "normal")
	for _, steps := range []int{9, 4, 1} {
		q := p
		q.Steps = steps
		ends, most := 0, 0
		for row := range slices.Chunk(d.Cut(q).Get("target"), 13) {
			has, labels := Transcript(row)
			if has < 1 || has > steps || ctc.Needs(labels) > has {
				t.Errorf("%d steps: %v do not fit %d", steps, labels, has)
			}
			if has < steps {
				ends++
			}
			most = max(most, len(labels))
		}
		if most < steps/2 || steps == p.Steps && ends == 0 {
			t.Errorf("%d steps: %d sequences end early, and no transcript has more than %d labels", steps, ends, most)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Problem{Cell: cell.LSTM, Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(p *Problem){
		"no cell":   func(p *Problem) { p.Cell = nil },
		"hidden":    func(p *Problem) { p.Hidden = 0 },
		"negative":  func(p *Problem) { p.Batch = -1 },
		"huge":      func(p *Problem) { p.Steps = 1 << 40 },
		"overflow":  func(p *Problem) { p.Hidden, p.Batch, p.Steps = 1<<30, 1<<30, 1<<30 },
		"output":    func(p *Problem) { p.Output = -1 },
		"symbols":   func(p *Problem) { p.OneHot, p.Input = true, MaxSymbols+1 },
		"no layers": func(p *Problem) { p.Layers = 0 },
		"norm":      func(p *Problem) { p.Norm = "group" },
		"skip":      func(p *Problem) { p.Skip = -1 },
		"lookahead": func(p *Problem) { p.Lookahead = MaxLookahead + 1 },
		"modules":   func(p *Problem) { p.Lookahead, p.Skip = 2, p.Layers+1 },
		"dense":     func(p *Problem) { p.Output, p.Dense = 2, -1 },
		"bare":      func(p *Problem) { p.Dense = 2 },
		"layers":    func(p *Problem) { p.Layers = MaxLayers + 1 },
	} {
		p := good
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFLOPs(t *testing.T) {
	// Appleyard's case: 8 products of 512×512 by 512×64, 4 layers, 100 steps.
	p := Problem{Cell: cell.LSTM, Input: 512, Hidden: 512, Layers: 4, Batch: 64, Steps: 100}
	want := int64(8) * 2 * 512 * 512 * 64 * 4 * 100
	if got := p.FLOPs(); got != want {
		t.Errorf("forward: %d, want %d", got, want)
	}
	if p.Pass = Train; p.FLOPs() != 3*want {
		t.Errorf("train: %d, want %d", p.FLOPs(), 3*want)
	}
	if got := p.RecurrentFLOPs(); got != want/2 {
		t.Errorf("recurrent: %d, want %d", got, want/2)
	}
}
