package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/tuner/config"
)

func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --label first -q --impl naive,cudnnstyle -S 2 --allow-failures").want(t, exit.Done, nil, nil)
	rnnbench(t, tiny+" --label second -q").want(t, exit.Done, nil, nil)
	runs, err := filepath.Glob(config.Dir + "/2*")
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v: %v", runs, err)
	}
	rnnbench(t, "report -f page.html").want(t, exit.Done, nil, []string{"wrote page.html"})
	page, err := os.ReadFile("page.html")
	if err != nil || !bytes.Contains(page, []byte("<svg")) || !bytes.Contains(page, []byte("--label second")) {
		t.Errorf("%v: %.300s", err, page)
	}
	rnnbench(t, "report "+strings.Join(runs, " ")).want(t, exit.Done, []string{"naive runs on one stream", "<h1>", "first", "second"}, nil)
	rnnbench(t, "report --title Mine --where impl=naive").want(t, exit.Done, []string{"<h1>Mine</h1>"}, nil)
	rnnbench(t, "report -f nowhere/a.html").want(t, exit.Error, nil, []string{"nowhere"})
}
