package cluster

import (
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestManifest decodes the manifests strictly into the API's own types. It says nothing of a
// cluster.
func TestManifest(t *testing.T) {
	s := again(example("kubernetes"))
	strict := func(doc string, v any) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(doc), v); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
	}
	first := strings.Split(texts(t, s, 0)[0].Content, "\n---\n")
	if len(first) != 5 {
		t.Fatalf("%d documents", len(first))
	}
	var claim core.PersistentVolumeClaim
	strict(first[0], &claim)
	if q := claim.Spec.Resources.Requests[core.ResourceStorage]; q.String() != "1Gi" || claim.Name != "nightly" || claim.Namespace != "bench" {
		t.Errorf("%+v", claim)
	}
	var shards, merge, plain, retry batch.Job
	strict(first[1], &shards)
	strict(first[2], &merge)
	strict(first[3], &plain)
	pod := shards.Spec.Template.Spec
	c := pod.Containers[0]
	switch {
	case shards.Kind != "Job" || shards.APIVersion != "batch/v1" || shards.Name != "nightly-h100" || *shards.Spec.CompletionMode != batch.IndexedCompletion || *shards.Spec.Completions != 3 || *shards.Spec.Parallelism != 3:
		t.Errorf("%+v", shards)
	case *shards.Spec.BackoffLimitPerIndex != 3 || len(shards.Spec.PodFailurePolicy.Rules) != 2 || pod.RestartPolicy != core.RestartPolicyNever || *pod.TerminationGracePeriodSeconds != 30 || *pod.ActiveDeadlineSeconds != 7200:
		t.Errorf("%+v", shards.Spec)
	case pod.NodeSelector["nvidia.com/gpu.product"] != "H100" || pod.NodeSelector["disk"] != "ssd" || plain.Spec.Template.Spec.NodeSelector["nvidia.com/gpu.product"] != "":
		t.Errorf("%v", pod.NodeSelector)
	case !slices.Equal(c.Args, append(literal(s.Command...), "--out", "/results/nightly/h100", "--submitted-version", "v1.2.3", "--submitted-device", "cuda-nvidia-h100")):
		t.Errorf("%q", c.Args)
	case c.Env[0].Name != "JOB_COMPLETIONS" || c.Env[0].Value != "3" || c.Env[1].ValueFrom.FieldRef.FieldPath != "spec.nodeName" || c.VolumeMounts[0].MountPath != Mount || pod.Volumes[0].PersistentVolumeClaim.ClaimName != "nightly":
		t.Errorf("%+v", c)
	case pod.Affinity == nil || len(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1:
		t.Error("two shards may share a node")
	case merge.Name != "nightly-h100-merge" || merge.Spec.Template.Spec.RestartPolicy != core.RestartPolicyOnFailure || !slices.Equal(merge.Spec.Template.Spec.Containers[0].Args, []string{"merge", "/results/nightly/h100"}):
		t.Errorf("%+v", merge)
	}

	second := strings.Split(texts(t, s, 1)[0].Content, "\n---\n")
	if len(second) != 2 {
		t.Fatalf("%d documents of the retry", len(second))
	}
	strict(second[0], &retry)
	if args := retry.Spec.Template.Spec.Containers[0].Args; retry.Name != "nightly-a100-r1" || *retry.Spec.Completions != 3 || !slices.Equal(args[len(args)-2:], []string{"--shard", "3,7,8/12"}) {
		t.Errorf("%+v", retry)
	}

	s.Kubernetes.Limits, s.Kubernetes.Storage, s.Kubernetes.Namespace = []string{"nvidia.com/gpu=1"}, "", ""
	limited := strings.Split(texts(t, s, 0)[0].Content, "\n---\n")
	var job batch.Job
	strict(limited[0], &job)
	if q := job.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; len(limited) != 4 || q.String() != "1" || job.Spec.Template.Spec.Affinity != nil || job.Namespace != "" {
		t.Errorf("%+v", job.Spec.Template.Spec)
	}
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(first[1], "completionMode", "completionsMode", 1)), &job); err == nil {
		t.Error("a wrong key is not seen")
	}
}

// TestManifestIsLiteral: Kubernetes replaces nothing in the words of a command.
func TestManifestIsLiteral(t *testing.T) {
	s := again(example("kubernetes"))
	label := "$(NODE_NAME) $$ $(( \u2028 \n"
	s.Command, s.Program = []string{"sweep", "--label", label}, "/opt/$(HOME)/rnnbench"
	var job batch.Job
	if err := yaml.UnmarshalStrict([]byte(strings.Split(texts(t, s, 0)[0].Content, "\n---\n")[1]), &job); err != nil {
		t.Fatal(err)
	}
	c := job.Spec.Template.Spec.Containers[0]
	for _, x := range [][2]string{{c.Args[2], label}, {c.Command[0], s.Program}} {
		if strings.Contains(strings.ReplaceAll(x[0], "$$", ""), "$") || strings.ReplaceAll(x[0], "$$", "$") != x[1] {
			t.Errorf("%q is %q in the manifest", x[1], x[0])
		}
	}
	for _, bad := range []string{"a b", "a\nb", "a\rb", "a\u2028b", "a\x7fb"} {
		if CheckWord("image", bad) == nil || CheckPair("limit", "a="+bad, "a=1") == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
