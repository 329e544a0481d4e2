// Package around reads counters of the operating system that tell what disturbed a measurement: other
// programs, a hypervisor, the quota of a control group, heat. Two readings, one before and one after,
// give the disturbance between. Linux publishes the counters under /proc and /sys; elsewhere nothing is
// known, and nothing is said.
package around

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnnbench/internal/cgroup"
	"rnnbench/internal/family"
	"rnnbench/record"
)

// A Reader reads the counters of one machine. A reading takes tens of microseconds, and a few for each
// core whose heat is counted.
type Reader struct {
	root       fs.FS
	processors []int // that this process may use
	quotas     []cgroup.Group
	heat       []string // files that count how often heat slowed a core or a package down
	now        func() time.Time
	runs       []Run // found at looked
	looked     time.Time
}

// NewReader returns a reader of the counters below root, such as os.DirFS("/"), for a process that may
// use the processors of cpu.
func NewReader(root fs.FS, cpu record.CPU) *Reader {
	r := &Reader{root: root, processors: cpu.Processors(), quotas: cgroup.Quotas(root), now: time.Now}
	r.heat = heatFiles(root, r.processors)
	return r
}

// Counters are one reading.
type Counters struct {
	at      time.Time
	busy    float64 // seconds of the processors; those that were stolen do not count
	stolen  float64 // likewise
	known   bool    // busy and stolen were read
	own     float64 // seconds that this program and its children used
	mine    bool    // own was read
	stopped []float64
	heat    int64
}

// Read reads the counters; nil if r is.
func (r *Reader) Read() *Counters {
	if r == nil {
		return nil
	}
	c := &Counters{at: r.now()}
	c.busy, c.stolen, c.known = r.busy()
	c.own, c.mine = family.Seconds(r.root)
	for _, g := range r.quotas {
		c.stopped = append(c.stopped, g.Stopped(r.root))
	}
	for _, name := range r.heat {
		c.heat += count(r.root, name)
	}
	return c
}

// busy reads the seconds that the processors were busy and those that were stolen.
func (r *Reader) busy() (busy, stolen float64, ok bool) {
	text, err := fs.ReadFile(r.root, "proc/stat")
	if err != nil {
		return 0, 0, false
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "cpu") { // those of processors come first
			break
		}
		// cpu0 user nice system idle iowait irq softirq steal; guest time is in user
		fields := strings.Fields(line)
		n, err := strconv.Atoi(strings.TrimPrefix(fields[0], "cpu"))
		if err != nil || len(fields) < 9 || !slices.Contains(r.processors, n) {
			continue
		}
		found++
		for i := 1; i <= 8; i++ {
			v, err := strconv.ParseUint(fields[i], 10, 64)
			switch {
			case err != nil:
				return 0, 0, false
			case i == 4 || i == 5: // idle
			case i == 8:
				stolen += family.Tick * float64(v)
			default:
				busy += family.Tick * float64(v)
			}
		}
	}
	return busy, stolen, found > 0 && found == len(r.processors)
}

// Since returns what disturbed the program since a reading; nil: nothing is known. It looks for other
// runs of rnnbench only if other programs took processors, since that takes longer.
func (r *Reader) Since(from *Counters, onGPU bool) *record.Disturbance {
	d := r.Between(from, r.Read())
	if d.Crowded(onGPU) {
		for _, other := range r.Runs() {
			d.Runs = append(d.Runs, other.PID)
		}
	}
	return d
}

// Between returns what disturbed the program between two readings; nil: nothing is known.
func (r *Reader) Between(from, to *Counters) *record.Disturbance {
	if r == nil || from == nil || to == nil {
		return nil
	}
	seconds := to.at.Sub(from.at).Seconds()
	if seconds <= 0 || !from.known && !from.mine || !to.known && !to.mine {
		return nil
	}
	d := &record.Disturbance{Seconds: seconds, Processors: len(r.processors), Runs: []int{}}
	mean := func(from, to float64) *float64 {
		v := max(0, to-from) / seconds
		return &v
	}
	mine := from.mine && to.mine
	if mine {
		d.Own = mean(from.own, to.own)
	}
	if from.known && to.known {
		d.Stolen = mean(from.stolen, to.stolen)
		if mine {
			d.Others = mean(0, (to.busy-from.busy)-max(0, to.own-from.own))
			*d.Others = min(*d.Others, max(0, float64(d.Processors)-*d.Own)) // ticks are coarse beside a short time
		}
	}
	if len(r.heat) > 0 {
		n := max(0, to.heat-from.heat)
		d.Heat = &n
	}
	for i, g := range r.quotas {
		stopped := max(0, to.stopped[i]-from.stopped[i])
		ran := max(0, to.own-from.own)
		share := 0.0
		if stopped > 0 {
			share = stopped / (stopped + ran)
		}
		if d.Quota == nil || share > *d.Stopped || share == *d.Stopped && g.Quota < *d.Quota {
			quota := g.Quota
			d.Quota, d.Stopped = &quota, &share
		}
	}
	return d
}

// heatFiles lists the counters of processors' heat: that of each core, and one of each package.
func heatFiles(root fs.FS, processors []int) []string {
	const most = 64 // that are read each time
	var list, packages []string
	for _, n := range processors {
		at := "sys/devices/system/cpu/cpu" + strconv.Itoa(n) + "/"
		if core := at + "thermal_throttle/core_throttle_count"; exists(root, core) {
			list = append(list, core)
		}
		id, _ := fs.ReadFile(root, at+"topology/physical_package_id")
		if all := at + "thermal_throttle/package_throttle_count"; exists(root, all) && !slices.Contains(packages, string(id)) {
			packages, list = append(packages, string(id)), append(list, all)
		}
		if len(list) >= most {
			break
		}
	}
	return list
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// count reads a file of one number; 0: it cannot be read.
func count(root fs.FS, name string) int64 {
	text, _ := fs.ReadFile(root, name)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}
