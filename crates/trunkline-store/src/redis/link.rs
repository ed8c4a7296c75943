//! An address → a connection that is there when Redis is, made again when it was lost.

#![expect(
    clippy::disallowed_methods,
    reason = "Redis is another machine: its answers have a deadline, and a refusal is tried again later."
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue,
    Pipeline, ProtocolVersion, RedisConnectionInfo, RedisError, RedisFuture, ScriptInvocation,
    ServerErrorKind, TlsCertificates, TlsMode, Value,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{RedisAddress, RedisSettings};
use crate::StoreError;
use crate::address::{AddressKind, Node};

/// The one way to Redis of a store: many commands at a time over one connection.
pub(super) struct Link {
    settings: RedisSettings,
    /// The sentinels remember what they were told, so they are asked one at a time.
    sentinel: Option<Mutex<SentinelClient>>,
    current: Mutex<Option<(u64, Connection)>>,
    made: AtomicU64,
    /// Random: tells this process from others.
    name: [u8; 16],
}

#[derive(Clone)]
pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Whether a command may be sent again after a failure that does not say whether Redis ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// What Redis is asked.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    Command(&'a Cmd),
    Pipeline(&'a Pipeline),
    Script(&'a ScriptInvocation<'a>),
}

impl Request<'_> {
    async fn send<T: FromRedisValue>(self, connection: &mut Connection) -> Result<T, RedisError> {
        match self {
            Request::Command(command) => command.query_async(connection).await,
            Request::Pipeline(pipeline) => pipeline.query_async(connection).await,
            Request::Script(call) => call.invoke_async(connection).await,
        }
    }
}

impl Link {
    pub(super) fn new(settings: RedisSettings) -> Result<Self, StoreError> {
        let sentinel = match &settings.address.kind {
            AddressKind::Sentinel { sentinels, primary } => {
                let client = sentinel_client(&settings, sentinels, primary);
                Some(Mutex::new(client.map_err(|error| unavailable(&settings.address, &error))?))
            }
            _ => None,
        };
        let mut name = [0; 16];
        SystemRandom::new().fill(&mut name).map_err(|_| {
            StoreError::Unavailable("This machine gives no random numbers.".to_owned())
        })?;
        let (current, made) = Default::default();
        Ok(Self { settings, sentinel, current, made, name })
    }

    /// Runs `command` once, on a connection that is there or is made for it.
    ///
    /// A refusal that proves that nothing was done (a failover, a moved slot) is tried again for as long as a command
    /// may take. A lost answer is not: only a read is asked again, once.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        kind: Kind,
        request: Request<'_>,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + self.settings.patience;
        let mut reads = if kind == Kind::Read { 1 } else { 0 };
        let mut pause = Duration::from_millis(10);
        loop {
            let (made, mut connection) = match self.connection(deadline).await {
                Ok(connection) => connection,
                Err(_) if Instant::now() + pause < deadline => {
                    back_off(&mut pause).await;
                    continue;
                }
                Err(error) => return Err(self.unavailable(&error)),
            };
            let error = match request.send::<T>(&mut connection).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if error.is_io_error() || error.is_unrecoverable_error() {
                self.forget(made).await;
            }
            let again = if was_refused(&error) {
                // A primary that became a replica: the sentinels know the new one.
                if matches!(connection, Connection::Single(_)) {
                    self.forget(made).await;
                }
                true
            } else {
                let again = reads > 0 && error.is_io_error();
                reads = 0;
                again
            };
            if !again || Instant::now() + pause >= deadline {
                return Err(self.refused(&error));
            }
            back_off(&mut pause).await;
        }
    }

    /// A connection for subscriptions. It belongs to the caller.
    pub(super) async fn subscriber(&self) -> Result<PubSub, RedisError> {
        let settings = &self.settings;
        let connect = async {
            match &settings.address.kind {
                AddressKind::Sentinel { .. } => self.primary().await?.get_async_pubsub().await,
                AddressKind::Cluster(nodes) => {
                    // Every node of a cluster hears what is published at any.
                    let mut last = None;
                    for node in nodes {
                        let client = client(settings, connection_address(settings, node))?;
                        match client.get_async_pubsub().await {
                            Ok(connection) => return Ok(connection),
                            Err(error) => last = Some(error),
                        }
                    }
                    Err(last.unwrap_or_else(timed_out))
                }
                AddressKind::Single(_) | AddressKind::Socket(_) => {
                    single_client(settings)?.get_async_pubsub().await
                }
            }
        };
        tokio::time::timeout(settings.patience, connect).await.unwrap_or_else(|_| Err(timed_out()))
    }

    /// Tells `message` to those who listen to `channel`. In a cluster all that is said on one channel goes by the same
    /// node, so that it arrives in order.
    pub(super) async fn publish(&self, channel: &str, message: &[u8]) -> Result<(), StoreError> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(channel).arg(message);
        self.run(Kind::Write, Request::Command(&command)).await
    }

    /// Bytes that no other process and no earlier call was given.
    pub(super) fn mark(&self) -> [u8; 24] {
        let mut mark = [0; 24];
        mark[..16].copy_from_slice(&self.name);
        mark[16..].copy_from_slice(&self.made.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        mark
    }

    /// Waits for `work` as long as an operation may take.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, StoreError> {
        let done = tokio::time::timeout(self.settings.patience, work).await;
        done.unwrap_or_else(|_| Err(timed_out())).map_err(|error| self.unavailable(&error))
    }

    pub(super) fn unavailable(&self, error: &RedisError) -> StoreError {
        unavailable(&self.settings.address, error)
    }

    fn refused(&self, error: &RedisError) -> StoreError {
        match error.code() {
            // `maxmemory` is reached and nothing may be evicted.
            Some("OOM") => StoreError::Full { what: "bytes", most: 0 },
            _ => self.unavailable(error),
        }
    }

    async fn connection(&self, deadline: Instant) -> Result<(u64, Connection), RedisError> {
        let connect = async {
            let mut current = self.current.lock().await;
            if let Some((made, connection)) = &*current {
                return Ok((*made, connection.clone()));
            }
            let connection = self.connect().await?;
            let made = self.made.fetch_add(1, Ordering::Relaxed);
            *current = Some((made, connection.clone()));
            Ok((made, connection))
        };
        tokio::time::timeout_at(deadline, connect).await.unwrap_or_else(|_| Err(timed_out()))
    }

    async fn connect(&self) -> Result<Connection, RedisError> {
        let settings = &self.settings;
        match &settings.address.kind {
            AddressKind::Sentinel { .. } => {
                let client = self.primary().await?;
                client.get_multiplexed_async_connection_with_config(&config(settings)).await
            }
            AddressKind::Cluster(nodes) => {
                let cluster = cluster_client(settings, nodes)?;
                return cluster.get_async_connection().await.map(Connection::Cluster);
            }
            AddressKind::Single(_) | AddressKind::Socket(_) => {
                let client = single_client(settings)?;
                client.get_multiplexed_async_connection_with_config(&config(settings)).await
            }
        }
        .map(Connection::Single)
    }

    async fn primary(&self) -> Result<Client, RedisError> {
        let sentinel = self.sentinel.as_ref().ok_or_else(timed_out)?;
        sentinel.lock().await.async_get_client().await
    }

    /// Drops connection `made`, unless another took its place.
    async fn forget(&self, made: u64) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|(current, _)| *current == made) {
            *current = None;
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Connection::Single(connection) => connection.req_packed_command(cmd),
            Connection::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Connection::Single(connection) => {
                connection.req_packed_commands(pipeline, offset, count)
            }
            Connection::Cluster(connection) => {
                connection.req_packed_commands(pipeline, offset, count)
            }
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Connection::Single(connection) => connection.get_db(),
            Connection::Cluster(connection) => connection.get_db(),
        }
    }
}

/// Whether Redis said that it did not run the command, and may run it soon.
fn was_refused(error: &RedisError) -> bool {
    let ErrorKind::Server(kind) = error.kind() else {
        return error.kind() == ErrorKind::ClusterConnectionNotFound;
    };
    matches!(
        kind,
        ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::ReadOnly
    )
}

fn unavailable(address: &RedisAddress, error: &RedisError) -> StoreError {
    let why = match (error.is_timeout(), error.code(), error.detail()) {
        (true, ..) => "no answer in time".to_owned(),
        (_, Some(code), Some(detail)) => format!("{code} {detail}"),
        (_, _, Some(detail)) => detail.to_owned(),
        _ => error.to_string(),
    };
    StoreError::Unavailable(format!(
        "Redis at {address} cannot be used ({why}); check that it runs and that this machine reaches it."
    ))
}

fn config(settings: &RedisSettings) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(settings.patience))
        .set_response_timeout(Some(settings.patience))
        .set_concurrency_limit(IN_FLIGHT)
}

fn single_client(settings: &RedisSettings) -> Result<Client, RedisError> {
    let address = match &settings.address.kind {
        AddressKind::Single(node) => connection_address(settings, node),
        AddressKind::Socket(path) => ConnectionAddr::Unix(path.into()),
        AddressKind::Sentinel { .. } | AddressKind::Cluster(_) => return Err(timed_out()),
    };
    client(settings, address)
}

fn client(settings: &RedisSettings, address: ConnectionAddr) -> Result<Client, RedisError> {
    use redis::IntoConnectionInfo as _;
    let info: ConnectionInfo = address.into_connection_info()?.set_redis_settings(login(settings));
    match certificates(settings) {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    }
}

fn sentinel_client(
    settings: &RedisSettings,
    sentinels: &[Node],
    primary: &str,
) -> Result<SentinelClient, RedisError> {
    let addresses = sentinels.iter().map(|node| connection_address(settings, node));
    let mut builder = SentinelClientBuilder::new(addresses, primary, SentinelServerType::Master)?
        .set_client_to_redis_db(settings.address.database);
    if let Some(user) = &settings.address.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &settings.address.password {
        builder = builder.set_client_to_redis_password(password);
    }
    if let Some(certificates) = certificates(settings) {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_redis_certificates(certificates.clone())
            .set_client_to_sentinel_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_certificates(certificates);
    }
    builder.build()
}

fn cluster_client(
    settings: &RedisSettings,
    nodes: &[Node],
) -> Result<redis::cluster::ClusterClient, RedisError> {
    use redis::IntoConnectionInfo as _;
    let nodes: Vec<ConnectionInfo> = nodes
        .iter()
        .map(|node| {
            let info = connection_address(settings, node).into_connection_info()?;
            Ok(info.set_redis_settings(login(settings)))
        })
        .collect::<Result<_, RedisError>>()?;
    // The library would send a command again whose answer was lost; `run` decides that.
    let mut builder = ClusterClientBuilder::new(nodes)
        .retries(0)
        .connection_timeout(settings.patience)
        .response_timeout(settings.patience);
    if let Some(certificates) = certificates(settings) {
        builder = builder.tls(TlsMode::Secure).certs(certificates);
    }
    builder.build()
}

fn login(settings: &RedisSettings) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default()
        .set_db(settings.address.database)
        .set_protocol(ProtocolVersion::RESP2)
        .set_skip_set_lib_name();
    if let Some(user) = &settings.address.user {
        login = login.set_username(user);
    }
    if let Some(password) = &settings.address.password {
        login = login.set_password(password);
    }
    login
}

fn connection_address(settings: &RedisSettings, node: &Node) -> ConnectionAddr {
    let Node { host, port } = node.clone();
    if settings.address.tls {
        ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host, port)
    }
}

fn certificates(settings: &RedisSettings) -> Option<TlsCertificates> {
    let root_cert = settings.ca.clone();
    settings.address.tls.then_some(TlsCertificates { client_tls: None, root_cert })
}

fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

/// Waits a little, and twice as long the next time.
async fn back_off(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(Duration::from_millis(200));
}

/// Commands that may wait for their answer at once.
const IN_FLIGHT: usize = 4_096;
