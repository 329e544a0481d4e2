package main

import (
	"fmt"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/internal/exit"
	"rnnbench/record"
)

// recorded names the runs of a report; "": none.
type recorded struct {
	run   string
	again string // a second run, of another day
}

// reportFrom reports on a recorded run, and rewrites the report and figures in its folder.
func reportFrom(p *program, e study.Experiment, from recorded, format string) error {
	set, err := recordedRun(p, e, from.run)
	if err != nil {
		return err
	}
	report, err := e.On(deviceOf(set), set.Records)
	if err != nil {
		return err
	}
	if m := set.Manifest.Merged; m != nil {
		report.Findings = append(report.Findings, fmt.Sprintf("The plan was divided into %s. All techniques at a point were measured by one of them.", plural(m.Count, "shard")))
	}
	if from.again != "" {
		line, err := repeatFinding(p, e, set, from.again)
		if err != nil {
			return err
		}
		report.Findings = append(report.Findings, line)
	}
	return present(p, e, report, format, set.Dir, true)
}

// recordedRun reads a run of experiment e, or one that has records of it.
func recordedRun(p *program, e study.Experiment, path string) (record.Set, error) {
	sets, warnings, err := record.ReadAllFrom(p.in, []string{path})
	for _, w := range warnings {
		p.Warn("%v", w)
	}
	if err != nil {
		return record.Set{}, err
	}
	set := sets[0]
	of := experiments.Of(set.Manifest)
	if of != "" && of != e.ID {
		return set, exit.Misuse(fmt.Errorf("the run in %s is from experiment %s, not %s", path, of, e.ID), "rnnbench reproduce "+of+" --from "+path+" redoes its report")
	}
	if recs := set.Records; !e.Concerns(deviceOf(set), recs, of == e.ID) {
		return set, exit.Misuse(fmt.Errorf("none of the %s in %s belongs to %s", plural(len(recs), "record"), path, e.ID),
			"--from takes a run of rnnbench reproduce "+e.ID+": its folder, its id, or a results folder (its latest run)")
	}
	return set, nil
}

// deviceOf returns the device of a run, or an empty one if the run names none.
func deviceOf(s record.Set) (d record.Device) {
	if list := s.Manifest.Devices; len(list) > 0 {
		d = list[0]
	}
	return d
}

// repeatFinding returns a finding on how far a second run of e differs from the first.
func repeatFinding(p *program, e study.Experiment, first record.Set, path string) (string, error) {
	second, err := recordedRun(p, e, path)
	if err != nil {
		return "", err
	}
	a, b := deviceOf(first).Key, deviceOf(second).Key
	if a != b {
		return "", exit.Misuse(fmt.Errorf("the run in %s measured %s, but the run in %s measured %s", first.Dir, a, path, b), "--again takes a second run of the same machine")
	}
	r := study.RepeatOf(first.Records, second.Records)
	if r.Pairs == 0 {
		return "", exit.Misuse(fmt.Errorf("the runs in %s and %s have no point and technique in common", first.Dir, path), "--again takes a second run of rnnbench reproduce "+e.ID)
	}
	began := func(s record.Set) string { return s.Manifest.Started.UTC().Format("2006-01-02 15:04") }
	line := fmt.Sprintf("Measured twice, %s and %s (UTC): the %s.", began(first), began(second), r)
	if first.Manifest.Environment.Tool.Revision != second.Manifest.Environment.Tool.Revision {
		line += " They are of two versions of rnnbench."
	}
	return line, nil
}
