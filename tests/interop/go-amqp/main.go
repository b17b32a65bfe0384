// go-amqp against the broker. Arguments: parts of the names of the cases to run.
package main

import (
	"os"
	"slices"
)

func main() {
	runAll(slices.Concat(messageCases, linkCases, connectionCases), os.Args[1:])
}
