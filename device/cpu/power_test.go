package cpu

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o444} }

// TestRAPL: the counters of all packages are added up, and may restart from 0.
func TestRAPL(t *testing.T) {
	dir := fstest.MapFS{
		"intel-rapl:0/name": file("package-0\n"), "intel-rapl:0/energy_uj": file("9000000\n"), "intel-rapl:0/max_energy_range_uj": file("10000000\n"),
		"intel-rapl:1/name": file("package-1\n"), "intel-rapl:1/energy_uj": file("5\n"), "intel-rapl:1/max_energy_range_uj": file("10000000\n"),
		"intel-rapl:0:0/name": file("core\n"), "intel-rapl:0:0/energy_uj": file("1\n"),
	}
	r := &rapl{dir: dir}
	read := func(want float64) {
		t.Helper()
		p, err := r.read()
		if err != nil || p.Joules < want-1e-9 || p.Joules > want+1e-9 || p.Source != "rapl" {
			t.Fatalf("%+v, %v; want %v J", p, err, want)
		}
	}
	read(0)
	dir["intel-rapl:0/energy_uj"], dir["intel-rapl:1/energy_uj"] = file("9500000"), file("1000005")
	read(1.5)
	dir["intel-rapl:0/energy_uj"] = file("250000\n") // it restarted
	read(2.25)
}

// unreadable is a folder whose counters only root may read.
type unreadable struct{ fstest.MapFS }

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, "energy_uj") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.ReadFile(name)
}

// TestNoRAPL: the error says why there is no meter, and what to do.
func TestNoRAPL(t *testing.T) {
	one := fstest.MapFS{"intel-rapl:0/name": file("package-0\n"), "intel-rapl:0/energy_uj": file("many"), "intel-rapl:0/max_energy_range_uj": file("10")}
	for want, dir := range map[string]fs.FS{
		"has no package": fstest.MapFS{}, "chmod a+r": unreadable{one}, "does not hold a number": one,
	} {
		if _, err := (&rapl{dir: dir}).read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
