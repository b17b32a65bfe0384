//! Cases, connections and links for the fe2o3-amqp suite.

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{Body, Message, Outcome, Source};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Whatever a case returns as an error is its failure, and so is a panic.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub type Run = fn() -> Pin<Box<dyn Future<Output = Result> + Send>>;

/// Makes a list of (name, function) of async functions.
#[macro_export]
macro_rules! cases {
    ($($name:literal => $run:path,)*) => {
        pub const CASES: &[(&str, $crate::harness::Run)] = &[$(($name, || Box::pin($run()))),*];
    };
}

/// Runs the cases whose name contains one of the filters; all without filters.
pub async fn run_all(
    cases: impl Iterator<Item = &'static (&'static str, Run)>,
    filters: &[String],
) {
    for (name, run) in cases {
        if !filters.is_empty() && !filters.iter().any(|part| name.contains(part)) {
            continue;
        }
        println!("case {name}");
        match tokio::time::timeout(Duration::from_secs(60), tokio::spawn(run())).await {
            Ok(Ok(Ok(()))) => println!("ok {name}"),
            Ok(Ok(Err(error))) => fail(name, &format!("{error} ({error:?})")),
            Ok(Err(panic)) => fail(name, &message(panic.into_panic())),
            Err(_) => fail(name, "nothing within 60 s"),
        }
    }
    println!("done");
}

fn fail(name: &str, reason: &str) {
    println!("fail {name} # {}", reason.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast_ref::<&str>().unwrap_or(&"a panic")).to_string(),
    }
}

pub fn restart_broker(kill: bool) -> Result {
    println!("{}", if kill { "@restart kill" } else { "@restart" });
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

pub fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

pub fn url() -> String {
    format!("amqp://127.0.0.1:{}", env("AMQP_PORT"))
}

/// A name that nobody has used.
pub fn fresh() -> String {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    format!("fe2o3-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

/// Fails a step that takes longer than it should.
pub async fn soon<T, E: Into<Box<dyn Error + Send + Sync>>>(
    what: &str,
    step: impl Future<Output = std::result::Result<T, E>>,
) -> Result<T> {
    match tokio::time::timeout(Duration::from_secs(15), step).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(format!("{what}: nothing within 15 s").into()),
    }
}

/// One connection with one session.
pub struct Client {
    pub session: SessionHandle<()>,
    pub connection: ConnectionHandle<()>,
}

impl Client {
    pub async fn new() -> Result<Client> {
        Client::on(soon("open", Connection::open(fresh(), &*url())).await?).await
    }

    pub async fn on(mut connection: ConnectionHandle<()>) -> Result<Client> {
        let session = soon("begin", Session::begin(&mut connection)).await?;
        Ok(Client { session, connection })
    }

    pub async fn sender(&mut self, target: &str) -> Result<Sender> {
        soon("attach", Sender::attach(&mut self.session, fresh(), target)).await
    }

    /// A receiver that keeps `credit` messages coming.
    pub async fn receiver(&mut self, source: impl Into<Source>, credit: u32) -> Result<Receiver> {
        self.receiver_with(source, CreditMode::Auto(credit)).await
    }

    /// A receiver that gives credit only when told.
    pub async fn manual(&mut self, source: impl Into<Source>) -> Result<Receiver> {
        self.receiver_with(source, CreditMode::Manual).await
    }

    async fn receiver_with(
        &mut self,
        source: impl Into<Source>,
        credit: CreditMode,
    ) -> Result<Receiver> {
        let builder = Receiver::builder().name(fresh()).source(source).credit_mode(credit);
        soon("attach", builder.attach(&mut self.session)).await
    }

    /// A new queue with these texts in it.
    pub async fn filled(&mut self, texts: &[&str]) -> Result<String> {
        let queue = fresh();
        let mut sender = self.sender(&queue).await?;
        for text in texts {
            send(&mut sender, Message::from(text.to_string())).await?;
        }
        soon("close", sender.close()).await?;
        Ok(queue)
    }

    /// Finds nothing in the queue.
    pub async fn expect_empty(&mut self, queue: &str) -> Result {
        let mut receiver = self.manual(queue).await?;
        receiver.set_credit(1).await?;
        expect_nothing(&mut receiver).await?;
        soon("close", receiver.close()).await
    }

    pub async fn close(mut self) -> Result {
        soon("end", self.session.end()).await?;
        soon("close", self.connection.close()).await
    }
}

/// Sends and is told `accepted`.
pub async fn send<B>(sender: &mut Sender, message: Message<B>) -> Result
where
    B: fe2o3_amqp::types::messaging::SerializableBody,
{
    match soon("send", sender.send(message)).await? {
        Outcome::Accepted(_) => Ok(()),
        outcome => Err(format!("the outcome is {outcome:?}").into()),
    }
}

pub async fn take(receiver: &mut Receiver) -> Result<Delivery<Body<Value>>> {
    soon("receive", receiver.recv::<Body<Value>>()).await
}

pub fn value(delivery: &Delivery<Body<Value>>) -> &Value {
    delivery.body().try_as_value().expect("a body that is one value")
}

/// Receives and accepts messages with these texts.
pub async fn expect(receiver: &mut Receiver, texts: &[&str]) -> Result {
    for text in texts {
        let delivery = take(receiver).await?;
        assert_eq!(value(&delivery), &Value::from(*text));
        soon("accept", receiver.accept(&delivery)).await?;
    }
    Ok(())
}

/// Receives nothing for a while.
pub async fn expect_nothing(receiver: &mut Receiver) -> Result {
    let received = receiver.recv::<Body<Value>>();
    match tokio::time::timeout(Duration::from_millis(300), received).await {
        Err(_) => Ok(()),
        Ok(Ok(delivery)) => Err(format!("received {:?}", delivery.body()).into()),
        Ok(Err(error)) => Err(error.into()),
    }
}
