//! fe2o3-amqp against the broker. Arguments: parts of the names of the cases to run.

mod connections;
mod harness;
mod links;
mod messages;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let filters: Vec<String> = std::env::args().skip(1).collect();
    let cases = [messages::CASES, links::CASES, connections::CASES];
    harness::run_all(cases.into_iter().flatten(), &filters).await;
}
