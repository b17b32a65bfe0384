//! The task of a connection: moves bytes between the engine and a stream, and reconnects.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mochila_engine::{ConnectionConfig, Credentials};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, sleep_until, timeout};

use crate::clock::Clock;
use crate::command::Command;
use crate::core::Core;
use crate::error::Error;
use crate::options::Options;
use crate::shared::TaskState;
use crate::url::{Endpoint, Url};

/// Where streams come from.
pub(crate) struct Dialer {
    source: StreamSource,
    credentials: Credentials,
    hostname: Option<String>,
}

enum StreamSource {
    Tcp { endpoints: Vec<Endpoint>, next: usize, nodelay: bool, timeout_ms: u64 },
    Given(Option<Box<dyn Stream>>),
}

/// What AMQP is spoken over.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type Commands = mpsc::UnboundedReceiver<Command>;

/// Why a stream is no longer served.
enum Finish {
    /// The connection was closed because a handle asked for it, or all handles are gone.
    Done,
    Lost(Error),
}

/// Runs a connection until it ends for good. `ready` learns how the first attempt went.
pub(crate) async fn run(
    mut dialer: Dialer,
    options: Options,
    mut commands: Commands,
    state: Arc<TaskState>,
    ready: oneshot::Sender<Result<(), Error>>,
) {
    let clock = Clock::start();
    let config = Arc::new(config(&options, dialer.hostname.clone()));
    let reconnects = options.reconnect.is_some();
    let credentials = dialer.credentials.clone();
    let mut core = Core::new(config, credentials, state, reconnects, clock.now());
    let mut ready = Some(ready);
    let mut attempt = 0;
    let mut lost_ms = clock.now().mono_ms;
    let end = loop {
        let lost = match dial(&mut dialer, &mut core, &mut commands).await {
            Ok(Some(stream)) => {
                core.disconnected(clock.now());
                let mut connection = Served {
                    core: &mut core,
                    commands: &mut commands,
                    clock,
                    ready: &mut ready,
                    was_open: false,
                };
                match connection.serve(stream).await {
                    Finish::Done => break Error::Connection(None),
                    Finish::Lost(error) => {
                        if connection.was_open {
                            (attempt, lost_ms) = (0, clock.now().mono_ms);
                        }
                        error
                    }
                }
            }
            // Nobody needs the connection any more.
            Ok(None) => break Error::Connection(None),
            Err(error) => error,
        };
        attempt += 1;
        let elapsed_ms = clock.now().mono_ms - lost_ms;
        // Endpoints are tried in turn before a wait, which is why attempts count rounds of them.
        let round = attempt / dialer.endpoints();
        let wait_ms = match options.reconnect {
            Some(backoff) if lost.is_disconnection() => backoff.wait_ms(round, elapsed_ms),
            None if attempt < dialer.endpoints() && ready.is_some() => Some(0),
            _ => None,
        };
        let Some(wait_ms) = wait_ms else { break lost };
        if !wait(&mut core, &mut commands, Duration::from_millis(wait_ms)).await {
            break lost;
        }
    };
    core.finish(&end);
    if let Some(ready) = ready {
        let _ = ready.send(Err(end));
    }
}

/// Connects, while handles go on asking for things; `None` if nobody needs it any more.
async fn dial(
    dialer: &mut Dialer,
    core: &mut Core,
    commands: &mut Commands,
) -> Result<Option<Box<dyn Stream>>, Error> {
    let dialing = dialer.dial();
    tokio::pin!(dialing);
    loop {
        tokio::select! {
            stream = &mut dialing => return stream.map(Some),
            command = commands.recv() => match command {
                Some(command) => core.handle_command(command),
                None => return Ok(None),
            },
        }
        if core.is_closing() {
            return Ok(None);
        }
    }
}

/// Waits before the next attempt; false if nobody needs it any more.
async fn wait(core: &mut Core, commands: &mut Commands, time: Duration) -> bool {
    let waiting = sleep(time);
    tokio::pin!(waiting);
    loop {
        tokio::select! {
            () = &mut waiting => return true,
            command = commands.recv() => match command {
                Some(command) => core.handle_command(command),
                None => return false,
            },
        }
        if core.is_closing() {
            return false;
        }
    }
}

/// One stream's time.
struct Served<'a> {
    core: &'a mut Core,
    commands: &'a mut Commands,
    clock: Clock,
    ready: &'a mut Option<oneshot::Sender<Result<(), Error>>>,
    was_open: bool,
}

impl Served<'_> {
    async fn serve(&mut self, stream: Box<dyn Stream>) -> Finish {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut input = Vec::with_capacity(INPUT_ROOM);
        let mut output = Vec::new();
        let mut written = 0;
        let mut wanted_by_handles = true;
        let mut batch = Vec::new();
        loop {
            self.core.resume();
            self.was_open |= self.core.is_open();
            if self.was_open
                && let Some(ready) = self.ready.take()
            {
                // Whoever wanted the connection may have given up; then its handles are gone too.
                let _ = ready.send(Ok(()));
            }
            if written == output.len() {
                output.clear();
                written = 0;
                std::mem::swap(&mut output, self.core.output());
            }
            // A peer that has refused us has nothing more to say.
            let refused = matches!(self.core.end(), Some(Error::Refused));
            if (self.core.is_closed() || refused) && output.is_empty() {
                let _ = writer.shutdown().await;
                return self.finished();
            }
            let deadline = self.core.next_timeout_ms().map(|ms| self.clock.instant(ms).into());
            let timer = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = reader.read_buf(&mut input) => match read {
                    Ok(0) => self.core.handle_eof(self.clock.now()),
                    Ok(_) => self.handle_input(&mut input),
                    Err(error) => return Finish::Lost(error.into()),
                },
                result = writer.write(&output[written..]), if written < output.len() => {
                    match result {
                        Ok(0) => return Finish::Lost(io::Error::from(io::ErrorKind::WriteZero).into()),
                        Ok(bytes) => written += bytes,
                        Err(error) => return Finish::Lost(error.into()),
                    }
                }
                count = self.commands.recv_many(&mut batch, COMMANDS), if wanted_by_handles => {
                    if count == 0 {
                        // All handles are gone, and what they asked for last has been sent.
                        wanted_by_handles = false;
                        let (reply, _) = oneshot::channel();
                        self.core.handle_command(Command::Close { error: None, reply });
                    }
                    for command in batch.drain(..) {
                        self.core.handle_command(command);
                    }
                }
                () = timer => self.core.handle_timeout(self.clock.now()),
            }
        }
    }

    fn handle_input(&mut self, input: &mut Vec<u8>) {
        let consumed = self.core.handle_bytes(self.clock.now(), input);
        input.drain(..consumed);
        let wanted = self.core.wanted(input).max(INPUT_ROOM);
        input.reserve(wanted.saturating_sub(input.len()));
    }

    fn finished(&mut self) -> Finish {
        if self.core.is_closing() {
            return match self.core.end() {
                Some(error) if error.condition().is_some() => Finish::Lost(error.clone()),
                _ => Finish::Done,
            };
        }
        Finish::Lost(self.core.end().cloned().unwrap_or(Error::Connection(None)))
    }
}

impl Dialer {
    pub(crate) fn tcp(url: Url, options: &Options) -> Self {
        let Url { user, password, mut endpoints } = url;
        endpoints.extend(options.failover.iter().cloned());
        Self {
            credentials: crate::credentials::choose(options, user, password),
            hostname: endpoints.first().map(|endpoint| endpoint.host.clone()),
            source: StreamSource::Tcp {
                endpoints,
                next: 0,
                nodelay: options.nodelay,
                timeout_ms: options.connect_timeout_ms,
            },
        }
    }

    pub(crate) fn stream(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        options: &Options,
    ) -> Self {
        Self {
            credentials: crate::credentials::choose(options, None, None),
            hostname: None,
            source: StreamSource::Given(Some(Box::new(stream))),
        }
    }

    fn endpoints(&self) -> u32 {
        match &self.source {
            StreamSource::Tcp { endpoints, .. } => endpoints.len().max(1) as u32,
            StreamSource::Given(_) => 1,
        }
    }

    async fn dial(&mut self) -> Result<Box<dyn Stream>, Error> {
        match &mut self.source {
            StreamSource::Given(stream) => {
                stream.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected).into())
            }
            StreamSource::Tcp { endpoints, next, nodelay, timeout_ms } => {
                let endpoint = &endpoints[*next % endpoints.len()];
                *next += 1;
                let connecting = TcpStream::connect((endpoint.host.as_str(), endpoint.port));
                let stream = timeout(Duration::from_millis(*timeout_ms), connecting)
                    .await
                    .map_err(|_| Error::TimedOut("connecting"))?
                    .map_err(|error| describe(endpoint, &error))?;
                stream.set_nodelay(*nodelay)?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// An operator wants to know which endpoint it was.
pub(crate) fn describe(endpoint: &Endpoint, error: &io::Error) -> Error {
    io::Error::new(error.kind(), format!("{endpoint}: {error}")).into()
}

/// The engine's settings for these options.
pub(crate) fn config(options: &Options, hostname: Option<String>) -> ConnectionConfig {
    ConnectionConfig {
        container_id: options.container_id.clone().unwrap_or_else(crate::unique::container_id),
        hostname: options.hostname.clone().or(hostname),
        max_frame_size: options.max_frame_size,
        channel_max: options.channel_max,
        idle_timeout_ms: options.idle_timeout_ms.unwrap_or(0),
        handshake_timeout_ms: options.connect_timeout_ms,
        properties: options.properties.clone(),
        ..ConnectionConfig::default()
    }
}

/// Room for what one read may bring.
const INPUT_ROOM: usize = 64 << 10;
/// How many requests of handles are taken before the stream has its turn again.
const COMMANDS: usize = 256;
