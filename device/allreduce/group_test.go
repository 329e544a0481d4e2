package allreduce_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnnbench/device/allreduce"
)

// asReplica makes the test binary join a group, sum once, and wait to be killed.
const asReplica = "RNNBENCH_TEST_REPLICA"

func TestMain(m *testing.M) {
	path := os.Getenv(asReplica)
	if path == "" {
		os.Exit(m.Run())
	}
	g, err := allreduce.Join(path, 1, 2)
	if err == nil {
		err = g.Sum([]float32{2})
	}
	fmt.Println(err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(g)
}

func needsLocks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
}

// together runs do on n replicas, each in a goroutine, and returns their errors.
func together(t *testing.T, n int, do func(g *allreduce.Group) error) []error {
	needsLocks(t)
	path, err := allreduce.Create(t.TempDir(), n)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			g, err := allreduce.Join(path, r, n)
			if err != nil {
				errs[r] = err
				return
			}
			defer g.Close()
			errs[r] = do(g)
		})
	}
	wg.Wait()
	return errs
}

// TestSum: every replica gets the exact sums, for vectors of any length.
func TestSum(t *testing.T) {
	value := func(rank, call, i int) float32 { return float32((i*7+rank*3+call)%1001) - 500 }
	for _, n := range []int{1, 2, 3, 5} {
		for r, err := range together(t, n, func(g *allreduce.Group) error {
			for call, lengths := range [][]int{{1}, {3, 0, 5}, {1 << 15}, {1<<15 + 1, 17}, {100_003, 1}, {2}} {
				var vectors [][]float32
				at := 0
				for _, length := range lengths {
					v := make([]float32, length)
					for i := range v {
						v[i] = value(g.Rank(), call, at)
						at++
					}
					vectors = append(vectors, v)
				}
				if err := g.Sum(vectors...); err != nil {
					return err
				}
				for i, got := range slices.Concat(vectors...) {
					want := float32(0)
					for r := range n {
						want += value(r, call, i)
					}
					if got != want {
						return fmt.Errorf("call %d: value %d is %g, want %g", call, i, got, want)
					}
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("replica %d of %d: %v", r+1, n, err)
			}
		}
	}
}

// TestSumDiffers: replicas that sum vectors of different lengths get an error.
func TestSumDiffers(t *testing.T) {
	for r, err := range together(t, 2, func(g *allreduce.Group) error { return g.Sum(make([]float32, 3+g.Rank())) }) {
		if err == nil || !strings.Contains(err.Error(), "different schedules") {
			t.Errorf("replica %d: %v", r+1, err)
		}
	}
}

// TestReplicaLeaves: waiting for a replica that has left fails, and so does every later sum.
func TestReplicaLeaves(t *testing.T) {
	errs := together(t, 3, func(g *allreduce.Group) error {
		err := g.Sum([]float32{1})
		if err != nil || g.Rank() == 1 {
			return err
		}
		err = g.Sum([]float32{1})
		if again := g.Sum([]float32{1}); !errors.Is(again, allreduce.ErrGone) {
			return fmt.Errorf("a sum after the failure: %w", again)
		}
		return err
	})
	for r, err := range errs {
		if want := r != 1; errors.Is(err, allreduce.ErrGone) != want {
			t.Errorf("replica %d: %v", r+1, err)
		}
	}
}

// TestReplicaKilled: when a replica is killed, the others get an error and do not hang.
func TestReplicaKilled(t *testing.T) {
	needsLocks(t)
	path, err := allreduce.Create("", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asReplica+"="+path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g, err := allreduce.Join(path, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	v := []float32{1}
	if err := g.Sum(v); err != nil || v[0] != 3 {
		t.Errorf("the sum of 1 and 2 is %g: %v", v[0], err)
	}
	if err := cmd.Process.Kill(); err != nil { // it stays as a zombie until it is waited for
		t.Fatal(err)
	}
	if err := g.Sum(v); !errors.Is(err, allreduce.ErrGone) || err.Error() != "allreduce: replica 2 of 2 is gone: it was killed or has failed" {
		t.Errorf("after a kill: %v", err)
	}
	_ = cmd.Wait()
}

// TestJoinDeclines: Join says why it declines a replica.
func TestJoinDeclines(t *testing.T) {
	needsLocks(t)
	path, err := allreduce.Create(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	g, err := allreduce.Join(path, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path           string
		rank, replicas int
		want           string
	}{
		{path, 0, 2, "another process is that replica"},
		{path, 2, 2, "choose 1 to N"},
		{path, 0, 3, "not the"},
		{path + "none", 0, 2, "no such file"},
	} {
		if _, err := allreduce.Join(c.path, c.rank, c.replicas); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	g.Close()
	if _, err := allreduce.Join(path, 0, 2); err == nil || !strings.Contains(err.Error(), "has joined before") {
		t.Errorf("joining again: %v", err)
	}
	if _, err := allreduce.Create(t.TempDir(), 0); err == nil {
		t.Error("Create accepts zero replicas")
	}
}
