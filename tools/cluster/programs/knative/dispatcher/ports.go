// Takes the place of two constants of this package, 8080 and 8443, which are seldom free.
package dispatcher

import (
	"os"
	"strconv"
)

var (
	httpPort  = portFrom("CHANNEL_PORT")
	httpsPort = portFrom("CHANNEL_TLS_PORT")
)

func portFrom(name string) int {
	number, _ := strconv.Atoi(os.Getenv(name))
	return number
}
