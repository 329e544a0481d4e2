package rival_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/rival/internal/cheat"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/torch"
)

// asRival makes the test binary a rival. Its value is what the rival does wrong, and at which
// request: "hang run", "crash prepare". "honest" does nothing wrong.
const asRival = "RNNBENCH_TEST_RIVAL"

// seed is that of the inputs, which the rival knows.
const seed = 3

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == cheatVerb {
		cheat.Serve(os.Args[2])
		return
	}
	if how := os.Getenv(asRival); how != "" {
		what, at, _ := strings.Cut(how, " ")
		(&stranger{what: what, at: at}).serve()
		return
	}
	os.Exit(m.Run())
}

// A stranger is a rival that answers with the reference's own values.
type stranger struct {
	what, at string
	off      bool          // the answer is to be wrong
	arrays   []torch.Array // the inputs and the answer
}

type message struct {
	Hello, Run, Close int
	Open, Read        string
	Prepare           *struct {
		Data  string
		Knobs map[string]int
		Point struct {
			Cell, Pass, Precision, Direction    string
			Input, Hidden, Layers, Batch, Steps int
			Lengths                             []int
			Projection, Resets, Heads           int
			Norm                                string
		}
	}
}

func (s *stranger) serve() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			s.die(err)
		}
		switch {
		case m.Hello == 1:
			s.say("hello", `{"name":"stranger","version":"1.0","devices":["cpu"],"knobs":[{"name":"off","doc":"answers are off","values":[0,1]}],"precisions":["fp32","bf16"],"directions":["forward","reverse","both","alternate"],"lengths":true,"projection":true,"resets":true,"heads":true,"norms":["layer"]}`)
		case m.Open != "":
			s.say("open", `{"ok":true,"device":"a processor"}`)
		case m.Prepare != nil:
			s.prepare(&m)
		case m.Run > 0:
			start := time.Now()
			for time.Since(start) < time.Duration(m.Run)*20*time.Microsecond {
			}
			s.say("run", fmt.Sprintf(`{"wall_s":%g,"device_s":null}`, time.Since(start).Seconds()))
		case m.Read != "":
			s.write(m.Read)
			s.say("read", `{"ok":true}`)
		default:
			return
		}
	}
}

func (s *stranger) die(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// say answers a request, or does something wrong.
func (s *stranger) say(verb, line string) {
	if s.at != verb {
		fmt.Println(line)
		return
	}
	switch s.what {
	case "hang":
		fmt.Fprintln(os.Stderr, "still thinking")
		for {
			time.Sleep(time.Hour)
		}
	case "crash":
		fmt.Fprintln(os.Stderr, "first line\nSegmentation fault \x1b[31m")
		os.Exit(7)
	case "linger": // after its output, as where a processor or a driver is busy
		os.Stdout.Close()
		time.Sleep(2 * time.Second)
		os.Exit(7)
	case "heir": // its child holds the pipes
		child := exec.Command("sleep", "300")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			s.die(err)
		}
		os.Exit(7)
	case "orphan": // its grandchild has a session of its own, and no parent
		s.what = ""
		// Output returns when the grandchild lets go of the pipe, and so after it has left the group.
		if _, err := exec.Command("sh", "-c", "setsid sh -c 'exec sleep 600 >/dev/null 2>&1' &").Output(); err != nil {
			s.die(err)
		}
		fmt.Println(line)
	case "":
		fmt.Println(line)
	case "garbage":
		fmt.Println("Loading libraries …")
	case "list":
		fmt.Println("[1,2]")
	case "types":
		fmt.Println(`{"ok":"yes","wall_s":"1","devices":3}`)
	case "empty":
		fmt.Println("{}")
	case "flood":
		fmt.Println(`{"ok":"` + strings.Repeat("x", 1<<17) + `"}`)
	case "endless":
		for {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 1<<16))
		}
	case "twice":
		fmt.Printf("%s\n%s\n", line, line)
	case "error":
		fmt.Println(`{"error":"no kernel\nfor this"}`)
	case "unsupported":
		fmt.Println(`{"unsupported":"no such layers here"}`)
	case "spent": // it can do nothing more
		s.what = "error"
		fmt.Println(`{"unsupported":"no such layers here","spent":true}`)
	case "sideways":
		fmt.Println(`{"devices":["cpu"],"precisions":["fp32"],"directions":["sideways"]}`)
	case "approximate": // its functions are off, on this device
		fmt.Println(strings.Replace(line, "{", `{"unit_error":{"cpu":7.6e-6,"cuda":1},`, 1))
	case "sloppy": // more so than any may be
		fmt.Println(strings.Replace(line, "{", `{"unit_error":{"cpu":0.1},`, 1))
	case "unprojected":
		fmt.Println(`{"devices":["cpu"],"precisions":["fp32"],"directions":["forward","both"],"lengths":true}`)
	case "forward":
		fmt.Println(`{"devices":["cpu"],"precisions":["fp32"]}`)
	case "late":
		fmt.Println(`{"wall_s":1e9}`)
	case "early":
		time.Sleep(1500 * time.Millisecond)
		fmt.Println(`{"wall_s":1e-6}`)
	case "negative":
		fmt.Println(`{"wall_s":-1}`)
	default:
		fmt.Println(line)
	}
}

// prepare computes the answer and checks the inputs.
func (s *stranger) prepare(m *message) {
	q := m.Prepare.Point
	p := rnn.Problem{
		Cell: cell.Lookup(q.Cell), Input: q.Input, Hidden: q.Hidden, Layers: q.Layers, Batch: q.Batch, Steps: q.Steps, Projection: q.Projection, Resets: q.Resets, Heads: q.Heads, Norm: q.Norm,
		Pass: rnn.Pass(slices.Index(rnn.Passes(), q.Pass)), Precision: rnn.Precision(slices.Index(rnn.Precisions(), q.Precision)),
	}
	if p.Norm != "" {
		p.Cell = p.Cell.Norm()
	}
	if q.Direction != "" {
		p.Direction = rnn.Direction(slices.Index(rnn.Directions(), q.Direction))
	}
	if q.Lengths != nil {
		p.Lengths = rnn.LengthsOf(q.Lengths)
	}
	all := rnn.NewData(p, seed, p.Batch, "normal")
	err := s.given(m.Prepare.Data, all, q.Lengths)
	for k := 1; err != nil && k < 20; k++ { // units or sequences may have changed places
		err = s.given(m.Prepare.Data, all.Turned(all.Turn(k)), q.Lengths)
	}
	if err != nil {
		s.die(err)
	}
	s.off = m.Prepare.Knobs["off"] == 1
	s.say("prepare", `{"ok":true,"memory":12345}`)
}

// given computes the answer to d, unless the file has other inputs.
func (s *stranger) given(path string, d *rnn.Data, lengths []int) error {
	answer := oracle.Reference(d)
	plain := *d
	plain.Problem.Resets = 0 // PyTorch has none
	var err error
	if s.arrays, err = torch.Arrays(&plain, answer, torch.Source{}); err != nil {
		s.die(err)
	}
	if p := d.Problem; p.Resets > 0 {
		s.arrays = append(s.arrays, torch.Array{Name: "reset", Shape: []int{p.Steps, p.Batch}, Values: rnn.Repeat(d.Get("reset"), 1, d.Distinct, p.Batch)})
	}
	for i := range s.arrays {
		s.arrays[i] = packed(s.arrays[i], lengths)
	}
	f, err := os.Open(path)
	if err != nil {
		s.die(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		s.die(err)
	}
	for _, a := range s.arrays {
		want, ok := a.Values.([]float32)
		if !ok {
			continue // part of the answer
		}
		have := torch.Place{Name: a.Name, Shape: a.Shape, Values: make([]float32, len(want))}
		if err := torch.ReadNPZ(f, info.Size(), []torch.Place{have}); err != nil {
			s.die(err)
		}
		if !slices.Equal(have.Values, want) {
			return fmt.Errorf("%s is not what the seed says", a.Name)
		}
	}
	return nil
}

// packed is a in the protocol's form for sequences of these lengths, the longest first. Arrays of
// steps × sequences have the rows that exist. Those of layers × sequences have the longest sequence
// first. Exported sequences are in the opposite order.
func packed(a torch.Array, lengths []int) torch.Array {
	if len(lengths) == 0 || len(a.Shape) != 3 {
		return a
	}
	outer, batch, cols := a.Shape[0], a.Shape[1], a.Shape[2]
	var rows []int
	for t := range outer {
		for j, n := range lengths {
			if strings.Contains(a.Name, "put") && t >= n { // input, output and their gradients
				continue
			}
			rows = append(rows, t*batch+batch-1-j)
		}
	}
	if strings.Contains(a.Name, "put") {
		a.Shape = []int{len(rows), cols}
	}
	switch v := a.Values.(type) {
	case []float32:
		a.Values = picked(v, rows, cols)
	case []float64:
		a.Values = picked(v, rows, cols)
	}
	return a
}

func picked[F float32 | float64](values []F, rows []int, cols int) (out []F) {
	for _, row := range rows {
		out = append(out, values[row*cols:(row+1)*cols]...)
	}
	return out
}

// write writes the answer, or an invalid one.
func (s *stranger) write(path string) {
	list := slices.Clone(s.arrays)
	i := slices.IndexFunc(list, func(a torch.Array) bool { return a.Name == "output" })
	out := &list[i]
	values := slices.Clone(out.Values.([]float64))
	out.Values = values
	if s.off {
		values[0] += 0.1
	}
	switch s.what {
	case "wrong":
		values[len(values)-1] += 0.1
	case "nan":
		values[0] = math.NaN()
	case "shape":
		out.Shape = []int{len(values)}
	case "missing":
		out.Name = "outputs"
	case "nofile":
		return
	case "folder":
		if err := os.Mkdir(path, 0o777); err != nil {
			s.die(err)
		}
		return
	case "huge":
		f, err := os.Create(path)
		if err == nil {
			err = f.Truncate(1 << 36) // with holes
		}
		if err != nil {
			s.die(err)
		}
		return
	case "nozip":
		if err := os.WriteFile(path, []byte("PK\x03\x04 and so on"), 0o666); err != nil {
			s.die(err)
		}
		return
	}
	f, err := os.Create(path)
	if err != nil {
		s.die(err)
	}
	if err := torch.WriteNPZ(io.Writer(f), list); err != nil {
		s.die(err)
	}
	if err := f.Close(); err != nil {
		s.die(err)
	}
}
