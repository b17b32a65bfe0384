package mochila;

import java.util.List;

/** Qpid JMS against the broker. Arguments: parts of the names of the cases to run. */
final class Main {
    public static void main(String[] arguments) {
        Suite suite = new Suite();
        new Messages(suite);
        new Consumers(suite);
        new Groups(suite);
        new Connections(suite);
        new Transactions(suite);
        suite.runAll(List.of(arguments));
    }
}
