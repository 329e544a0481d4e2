package main

import (
	"os"
	"path/filepath"
	"testing"

	"rnnbench/internal/exit"
)

func TestSite(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "site -o site").want(t, exit.Error, nil, []string{"cannot search"})
	if err := os.MkdirAll("none/inside", 0o777); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "site none -o site").want(t, exit.Error, nil, []string{"no runs with records in none"})
	rnnbench(t, tiny+" --label first -q --impl naive").want(t, exit.Done, nil, nil)
	rnnbench(t, "site").want(t, exit.Usage, nil, []string{"add -o site"})
	rnnbench(t, "site -o site").want(t, exit.Done, nil, []string{"wrote", "open " + filepath.Join("site", "index.html")})
	rnnbench(t, "site --where impl=scc -o site").want(t, exit.Error, nil, []string{"select none"})
	rnnbench(t, "site -o site --title Mine").want(t, exit.Done, nil, nil)
	if text, err := os.ReadFile("site/index.html"); err != nil || len(text) == 0 {
		t.Error(err)
	}
	if err := os.WriteFile("none/mine", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, runs := range []string{"", "missing "} { // the folder is looked at before the runs
		rnnbench(t, "site "+runs+"-o none").want(t, exit.Error, nil, []string{"the folder none holds other files"})
	}
}
