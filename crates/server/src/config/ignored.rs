//! Options of the Qpid C++ broker that mean nothing here.

/// Options that are accepted, so that existing scripts run, and reported in one log line.
///
/// What would change the behaviour that a script relies on (encryption, access control, clustering)
/// is not among them: it is refused like any unknown option.
pub(super) static IGNORED: &[Ignored] = &[
    Ignored::with_value("client-config"),
    Ignored::with_value("module-dir"),
    Ignored::with_value("load-module"),
    Ignored::flag("no-module-dir"),
    Ignored::with_value("paging-dir"),
    Ignored::with_value("protocols"),
    Ignored::with_value("mgmt-enable"),
    Ignored::with_value("mgmt-publish"),
    Ignored::with_value("mgmt-qmf2"),
    Ignored::with_value("mgmt-qmf1"),
    Ignored::with_value("mgmt-pub-interval"),
    Ignored::with_value("queue-purge-interval"),
    Ignored::with_value("max-purge-batch"),
    Ignored::with_value("realm"),
    Ignored::with_value("sasl-service-name"),
    Ignored::with_value("sasl-config"),
    Ignored::flag("tcp-nodelay"),
    Ignored::with_value("known-hosts-url"),
    Ignored::with_value("link-maintenance-interval"),
    Ignored::with_value("link-heartbeat-interval"),
    Ignored::with_value("dtx-default-timeout"),
    Ignored::with_value("dtx-max-timeout"),
    Ignored::with_value("federation-tag"),
    Ignored::with_value("session-max-unacked"),
    Ignored::with_value("log-disable"),
    Ignored::with_value("log-time"),
    Ignored::with_value("log-source"),
    Ignored::with_value("log-thread"),
    Ignored::with_value("log-function"),
    Ignored::with_value("log-hires-timestamp"),
    Ignored::with_value("log-category"),
    Ignored::with_value("log-prefix"),
    Ignored::with_value("log-to-stderr"),
    Ignored::with_value("log-to-stdout"),
    Ignored::with_value("transport"),
    Ignored::with_value("wait"),
    Ignored::with_value("store-dir"),
    Ignored::with_value("truncate"),
    Ignored::with_value("wcache-page-size"),
    Ignored::with_value("wcache-num-pages"),
    Ignored::with_value("tpl-wcache-page-size"),
    Ignored::with_value("tpl-wcache-num-pages"),
    Ignored::with_value("efp-partition"),
    Ignored::with_value("efp-file-size"),
    Ignored::with_value("overwrite-before-return"),
    Ignored::with_value("journal-flush-timeout"),
];

pub(super) struct Ignored {
    pub(super) name: &'static str,
    pub(super) takes_value: bool,
}

impl Ignored {
    const fn with_value(name: &'static str) -> Self {
        Self { name, takes_value: true }
    }

    const fn flag(name: &'static str) -> Self {
        Self { name, takes_value: false }
    }
}
