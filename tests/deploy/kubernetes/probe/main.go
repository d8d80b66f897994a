// Asks a container what the kubelet asks it, by the kubelet's own prober: `probe MANIFEST KIND HOST`.
//
// KIND is startup, liveness or readiness; path, port and time are those of the manifest's first Deployment. For each
// line on its input it asks once, and writes `success` or `failure` with what was said.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	probe "k8s.io/kubernetes/pkg/probe/http"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(manifest, kind, host string) error {
	container, err := containerOf(manifest)
	if err != nil {
		return err
	}
	wanted := map[string]*core.Probe{
		"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
	}[kind]
	if wanted == nil || wanted.HTTPGet == nil {
		return fmt.Errorf("no %s probe by HTTP", kind)
	}
	// What the apiserver would fill in.
	seconds := max(wanted.TimeoutSeconds, 1)
	prober := probe.New(false)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		request, err := probe.NewRequestForHTTPGetAction(wanted.HTTPGet, container, host, "probe")
		if err != nil {
			return err
		}
		result, said, err := prober.Probe(request, time.Duration(seconds)*time.Second)
		if err != nil {
			return err
		}
		fmt.Println(result, strings.Join(strings.Fields(said), " "))
	}
	return nil
}

func containerOf(manifest string) (*core.Container, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var deployment apps.Deployment
		if err := yaml.Unmarshal(part, &deployment); err != nil {
			return nil, err
		}
		if deployment.Kind == "Deployment" {
			return &deployment.Spec.Template.Spec.Containers[0], nil
		}
	}
	return nil, fmt.Errorf("no Deployment in %s", manifest)
}
