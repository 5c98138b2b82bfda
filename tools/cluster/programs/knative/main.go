// The real Knative Eventing in two processes: `control` has the admission webhook and the controllers, `data` has the in-memory channel's
// dispatcher and the broker's ingress and filter. All that they do is upstream's, called as upstream's own commands call it. Ours are this
// page, a port that can be chosen, and a dialer in the place of the cluster's DNS and proxies, which a test cluster does not have.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"knative.dev/eventing/pkg/apis/config"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	eventingv1alpha1 "knative.dev/eventing/pkg/apis/eventing/v1alpha1"
	"knative.dev/eventing/pkg/apis/feature"
	flowsv1 "knative.dev/eventing/pkg/apis/flows/v1"
	messagingconfig "knative.dev/eventing/pkg/apis/messaging/config"
	messagingv1 "knative.dev/eventing/pkg/apis/messaging/v1"
	"knative.dev/eventing/pkg/auth"
	"knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/broker/filter"
	"knative.dev/eventing/pkg/broker/ingress"
	eventingscheme "knative.dev/eventing/pkg/client/clientset/versioned/scheme"
	brokerinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1/broker"
	triggerinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1/trigger"
	eventpolicyinformer "knative.dev/eventing/pkg/client/injection/informers/eventing/v1alpha1/eventpolicy"
	subscriptioninformer "knative.dev/eventing/pkg/client/injection/informers/messaging/v1/subscription"
	"knative.dev/eventing/pkg/eventingtls"
	"knative.dev/eventing/pkg/observability/otel"
	brokercontroller "knative.dev/eventing/pkg/reconciler/broker"
	triggercontroller "knative.dev/eventing/pkg/reconciler/broker/trigger"
	channelcontroller "knative.dev/eventing/pkg/reconciler/channel"
	eventpolicycontroller "knative.dev/eventing/pkg/reconciler/eventpolicy"
	memorychannelcontroller "knative.dev/eventing/pkg/reconciler/inmemorychannel/controller"
	"knative.dev/eventing/pkg/reconciler/inmemorychannel/dispatcher"
	parallelcontroller "knative.dev/eventing/pkg/reconciler/parallel"
	sequencecontroller "knative.dev/eventing/pkg/reconciler/sequence"
	subscriptioncontroller "knative.dev/eventing/pkg/reconciler/subscription"
	configmapinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/configmap/filtered"
	filteredfactory "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	"knative.dev/pkg/configmap"
	configmapwatcher "knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/logging"
	profiling "knative.dev/pkg/observability/runtime/k8s"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/system"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/certificates"
	"knative.dev/pkg/webhook/resourcesemantics"
	"knative.dev/pkg/webhook/resourcesemantics/defaulting"
	"knative.dev/pkg/webhook/resourcesemantics/validation"
)

var processes = map[string][]injection.ControllerConstructor{
	"control": {
		func(ctx context.Context, _ configmap.Watcher) *controller.Impl { return certificates.NewController(ctx, nil) },
		newDefaulting,
		newValidation,
		channelcontroller.NewController,
		subscriptioncontroller.NewController,
		memorychannelcontroller.NewController,
		brokercontroller.NewController,
		triggercontroller.NewController,
		eventpolicycontroller.NewController,
		parallelcontroller.NewController,
		sequencecontroller.NewController,
	},
	"data": {dispatcher.NewController, newBrokerData},
}

func main() {
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = append(os.Args[:1], os.Args[2:]...)
	}
	constructors, ok := processes[name]
	if !ok {
		log.Fatalf("usage: %s (control | data)", os.Args[0])
	}
	must(eventingscheme.AddToScheme(scheme.Scheme))

	ctx := signals.NewContext()
	if name == "control" {
		ctx = webhook.WithOptions(ctx, webhook.Options{
			ServiceName: "eventing-webhook",
			SecretName:  "eventing-webhook-certs",
			Port:        port("WEBHOOK_PORT"),
			GracePeriod: 100 * time.Millisecond,
		})
	}
	ctx = filteredfactory.WithSelectors(ctx, auth.OIDCLabelSelector, eventingtls.TrustBundleLabelSelector)
	ctx = sharedmain.WithHealthProbesDisabled(sharedmain.WithHADisabled(ctx))

	rest := injection.ParseAndGetRESTConfigOrDie()
	rest.QPS, rest.Burst = 500, 1000

	// Clients of upstream are made from the default transport; the one to the API server is not.
	transport := http.DefaultTransport.(*http.Transport)
	transport.Proxy = nil
	transport.DialContext = serviceDialer{kubernetes.NewForConfigOrDie(rest)}.dial

	sharedmain.MainWithConfig(ctx, "knative-eventing-"+name, rest, constructors...)
}

// What the webhook fills in and judges.
var resources = map[schema.GroupVersionKind]resourcesemantics.GenericCRD{
	eventingv1.SchemeGroupVersion.WithKind("Broker"):            &eventingv1.Broker{},
	eventingv1.SchemeGroupVersion.WithKind("Trigger"):           &eventingv1.Trigger{},
	eventingv1alpha1.SchemeGroupVersion.WithKind("EventPolicy"): &eventingv1alpha1.EventPolicy{},
	messagingv1.SchemeGroupVersion.WithKind("Channel"):          &messagingv1.Channel{},
	messagingv1.SchemeGroupVersion.WithKind("InMemoryChannel"):  &messagingv1.InMemoryChannel{},
	messagingv1.SchemeGroupVersion.WithKind("Subscription"):     &messagingv1.Subscription{},
	flowsv1.SchemeGroupVersion.WithKind("Parallel"):             &flowsv1.Parallel{},
	flowsv1.SchemeGroupVersion.WithKind("Sequence"):             &flowsv1.Sequence{},
}

func newDefaulting(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	name := "webhook.eventing.knative.dev"
	return defaulting.NewAdmissionController(ctx, name, "/defaulting", resources, webhookSettings(ctx, watcher), true)
}

func newValidation(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	name := "validation.webhook.eventing.knative.dev"
	return validation.NewAdmissionController(ctx, name, "/resource-validation", resources, webhookSettings(ctx, watcher), true)
}

func webhookSettings(ctx context.Context, watcher configmap.Watcher) func(context.Context) context.Context {
	logger := logging.FromContext(ctx)
	defaults := config.NewStore(logger.Named("defaults"))
	defaults.WatchConfigs(watcher)
	channels := messagingconfig.NewStore(logger.Named("channels"))
	channels.WatchConfigs(watcher)
	features := feature.NewStore(logger.Named("features"))
	features.WatchConfigs(watcher)
	return func(ctx context.Context) context.Context {
		return features.ToContext(channels.ToContext(defaults.ToContext(ctx)))
	}
}

// newBrokerData starts the broker's ingress and its filter, which upstream runs as two commands without a controller.
func newBrokerData(ctx context.Context, watcher configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx)
	informed := watcher.(*configmapwatcher.InformedWatcher)
	meter, tracer := otel.SetupObservabilityOrDie(ctx, "broker", logger, profiling.NewProfilingServer(logger))
	bundles := configmapinformer.Get(ctx, eventingtls.TrustBundleLabelSelector).Lister().ConfigMaps(system.Namespace())
	features := feature.NewStore(logger.Named("features"))
	features.WatchConfigs(watcher)
	tokens := auth.NewOIDCTokenProvider(ctx)
	verifier := auth.NewVerifier(ctx, eventpolicyinformer.Get(ctx).Lister(), bundles, watcher)

	ingressHandler, err := ingress.NewHandler(logger.Desugar(), broker.TTLDefaulter(logger.Desugar(), 255), brokerinformer.Get(ctx),
		verifier, tokens, bundles, features.ToContext, meter, tracer)
	must(err)
	ingressServers, err := ingress.NewServerManager(ctx, logger.Desugar(), informed,
		port("INGRESS_PORT"), port("INGRESS_TLS_PORT"), meter, tracer, ingressHandler)
	must(err)

	filterHandler, err := filter.NewHandler(logger.Desugar(), verifier, tokens, triggerinformer.Get(ctx), brokerinformer.Get(ctx),
		subscriptioninformer.Get(ctx), bundles, features.ToContext, meter, tracer)
	must(err)
	filterServers, err := filter.NewServerManager(ctx, logger.Desugar(), informed,
		port("FILTER_PORT"), port("FILTER_TLS_PORT"), meter, tracer, filterHandler)
	must(err)

	go func() { must(ingressServers.StartServers(ctx)) }()
	go func() { must(filterServers.StartServers(ctx)) }()
	return controller.NewContext(ctx, nothingToDo{}, controller.ControllerOptions{WorkQueueName: "broker-data", Logger: logger})
}

type nothingToDo struct{}

func (nothingToDo) Reconcile(context.Context, string) error { return nil }

// serviceDialer stands for DNS and kube-proxy. It leads NAME.NAMESPACE.svc to where the Service says: to its annotation, to its external
// name, or to its first endpoint.
type serviceDialer struct{ cluster kubernetes.Interface }

const forwardAnnotation = "test/forward"

func (d serviceDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	for hops := 0; ; hops++ {
		next, err := d.follow(ctx, address)
		if err != nil {
			return nil, err
		}
		if next == address || hops == 4 {
			break
		}
		address = next
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return dialer.DialContext(ctx, network, address)
}

func (d serviceDialer) follow(ctx context.Context, address string) (string, error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	labels := strings.Split(strings.TrimSuffix(host, ".cluster.local"), ".")
	if len(labels) != 3 || labels[2] != "svc" {
		return address, nil
	}
	name, namespace := labels[0], labels[1]
	service, err := d.cluster.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("no such host %s: %w", host, err)
	}
	if forward, ok := service.Annotations[forwardAnnotation]; ok {
		return forward, nil
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, number), nil
	}
	endpoints, err := d.cluster.CoreV1().Endpoints(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("no endpoints of %s: %w", host, err)
	}
	for _, subset := range endpoints.Subsets {
		if len(subset.Addresses) > 0 && len(subset.Ports) > 0 {
			return net.JoinHostPort(subset.Addresses[0].IP, strconv.Itoa(int(subset.Ports[0].Port))), nil
		}
	}
	return "", fmt.Errorf("no endpoints of %s", host)
}

func port(name string) int {
	number, err := strconv.Atoi(os.Getenv(name))
	must(err)
	return number
}

func must(err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
