// One program that is every part of a Kubernetes cluster; its first argument says which. Only this page is ours: the parts are upstream's,
// called as their own mains call them. One binary is built and kept in place of six that share most of their code.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	_ "time/tzdata" // CronJobs with a time zone, on machines that have none

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var parts = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 func() { kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand())) },
}

func main() {
	if len(os.Args) > 1 {
		if part, ok := parts[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			part()
			return
		}
	}
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: %s (%s) …\n", os.Args[0], strings.Join(names, " | "))
	os.Exit(2)
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}
