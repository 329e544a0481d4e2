package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"rnnbench/record"
	"rnnbench/tuner"
)

// A Message is one line of --progress json. Empty keys are left out. docs/progress.md explains the
// keys.
type Message struct {
	Event   string        `json:"event"`
	Elapsed float64       `json:"elapsed_s"`
	Done    *int          `json:"done,omitempty"`
	Total   int           `json:"total,omitempty"`
	ETA     *float64      `json:"eta_s,omitempty"`
	Point   *record.Point `json:"point,omitempty"`
	Impl    string        `json:"impl,omitempty"`
	Chosen  string        `json:"chosen,omitempty"`
	Phase   tuner.Phase   `json:"phase,omitempty"`
	Round   int           `json:"round,omitempty"`
	Rounds  int           `json:"rounds,omitempty"`
	Status  record.Status `json:"status,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Seconds float64       `json:"time_s,omitempty"`
	Leader  string        `json:"leader,omitempty"`

	RunnerUp   string   `json:"runner_up,omitempty"`
	Lead       *float64 `json:"lead,omitempty"`
	Candidates int      `json:"candidates,omitempty"`
	Dropped    int      `json:"dropped,omitempty"` // candidates dropped by prediction
	Samples    int      `json:"bursts,omitempty"`

	Text string `json:"text,omitempty"`
	Hint string `json:"hint,omitempty"`
	Exit int    `json:"exit,omitempty"`
}

// A Sender writes messages as lines.
type Sender struct {
	W     io.Writer
	Start time.Time
}

// Send writes a message.
func (s Sender) Send(m Message) {
	m.Elapsed = time.Since(s.Start).Seconds()
	line, err := json.Marshal(m)
	if err != nil {
		line = fmt.Appendf(nil, `{"event":"error","text":%q}`, err) // a number that JSON cannot express
	}
	_, _ = s.W.Write(append(line, '\n'))
}

// Text sends a line that is meant for people.
func (s Sender) Text(text string) {
	event := "note"
	if rest, ok := strings.CutPrefix(text, "warning: "); ok {
		event, text = "warning", rest
	}
	s.Send(Message{Event: event, Text: text})
}

// message starts a message with how far the sweep or tune is.
func (g *Progress) message(event string) Message {
	done := g.done
	if g.points > 0 {
		done = g.at
	}
	m := Message{Event: event, Done: &done, Total: g.Total, Leader: g.leader}
	if left, ok := g.left(); ok {
		m.ETA = &left
	}
	return m
}

// sendEvent sends an event of a sweep. It sends rounds at most five times a second.
func (g *Progress) sendEvent(e tuner.Event) {
	if e.Phase == tuner.Measuring && time.Since(g.drawn) < 200*time.Millisecond {
		return
	}
	g.drawn = time.Now()
	m := g.message("phase")
	m.Point, m.Impl, m.Phase = &e.Point, e.Label, e.Phase
	if e.Phase == tuner.Measuring {
		m.Round, m.Rounds = e.Round+1, e.Rounds
	}
	if r := e.Record; r != nil {
		m.Event, m.Phase, m.Status, m.Seconds = "record", "", r.Status, r.Seconds()
		if r.Reason != nil {
			m.Reason = *r.Reason
		}
		if c := r.Impl.Choice; c != nil {
			m.Chosen = c.Impl
		}
	}
	g.To.Send(m)
}
