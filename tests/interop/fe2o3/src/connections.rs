//! What a connection does: log in, be refused, come back after the broker went away.

use crate::harness::{Client, Result, env, expect, fresh, restart_broker, soon, url};
use fe2o3_amqp::Connection;
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::sasl_profile::SaslProfile;
use std::time::Duration;

crate::cases! {
    "right credentials are let in" => right_credentials,
    "wrong credentials are refused" => wrong_credentials,
    "anonymous is refused where a password is asked for" => anonymous_refused,
    "an idle connection is kept alive by heartbeats" => heartbeats,
    "connects again after the broker is restarted" => connects_after_restart,
    "connects again after the broker is killed" => connects_after_kill,
}

async fn login(profile: Option<SaslProfile>) -> Result<ConnectionHandle<()>> {
    let guarded = format!("amqp://127.0.0.1:{}", env("AMQP_AUTH_PORT"));
    let mut builder = Connection::builder().container_id(fresh());
    if let Some(profile) = profile {
        builder = builder.sasl_profile(profile);
    }
    soon("open", builder.open(&*guarded)).await
}

fn plain(username: &str, password: &str) -> Option<SaslProfile> {
    Some(SaslProfile::Plain { username: username.into(), password: password.into() })
}

async fn refused(profile: Option<SaslProfile>) -> Result {
    match login(profile).await {
        Ok(_) => Err("let in".into()),
        Err(error) if error.to_string().contains("nothing within") => Err(error),
        Err(_) => Ok(()),
    }
}

async fn right_credentials() -> Result {
    let connection = login(plain(&env("AMQP_USER"), &env("AMQP_PASSWORD"))).await?;
    let mut client = Client::on(connection).await?;
    let queue = client.filled(&["x"]).await?;
    expect(&mut client.receiver(queue, 1).await?, &["x"]).await?;
    client.close().await
}

async fn wrong_credentials() -> Result {
    refused(plain(&env("AMQP_USER"), "wrong")).await?;
    refused(plain("nobody", &env("AMQP_PASSWORD"))).await
}

async fn anonymous_refused() -> Result {
    refused(Some(SaslProfile::Anonymous)).await?;
    refused(None).await
}

async fn heartbeats() -> Result {
    let open = Connection::builder().container_id(fresh()).idle_time_out(600u32);
    let mut client = Client::on(soon("open", open.open(&*url())).await?).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let queue = client.filled(&["still here"]).await?;
    expect(&mut client.receiver(queue, 1).await?, &["still here"]).await?;
    client.close().await
}

/// Sees the connection end and opens another, as fe2o3-amqp leaves to its user.
async fn connects_again(kill: bool) -> Result {
    for _ in 0..2 {
        let mut client = Client::new().await?;
        let queue = client.filled(&["x"]).await?;
        expect(&mut client.receiver(queue, 1).await?, &["x"]).await?;
        restart_broker(kill)?;
        let ended = tokio::time::timeout(Duration::from_secs(15), client.connection.on_close());
        // Closed with an error or cut off: both tell the client.
        ended.await.map_err(|_| "the client did not see that the broker went away")?.ok();
    }
    let mut client = Client::new().await?;
    let queue = client.filled(&["x"]).await?;
    expect(&mut client.receiver(queue, 1).await?, &["x"]).await?;
    client.close().await
}

async fn connects_after_restart() -> Result {
    connects_again(false).await
}

async fn connects_after_kill() -> Result {
    connects_again(true).await
}
