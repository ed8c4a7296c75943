//! HTTP in, one upstream out, ids rewritten on the way and nothing else: hyper and serde_json with nothing around them.

mod envelope;
mod http;
mod stdio;

use std::convert::Infallible;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use self::envelope::Parts;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        Some((kind, [program, args @ ..])) if kind == "stdio" => to_child(program, args).await,
        Some((kind, [address])) if kind == "http" => to_server(address).await,
        _ => Err("Say `stdio PROGRAM [ARGUMENT…]` or `http HOST:PORT`.".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One child for all clients.
async fn to_child(program: &str, args: &[String]) -> Result<(), Box<dyn Error>> {
    let child = Arc::new(stdio::Child::start(program, args)?);
    let listener = listen().await?;
    loop {
        let client = accept(&listener).await?;
        let child = child.clone();
        tokio::spawn(serve(client, move |request| {
            let child = child.clone();
            async move { Ok(stdio::forward(request, &child).await) }
        }));
    }
}

/// One connection to the upstream for each connection of a client.
async fn to_server(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = listen().await?;
    loop {
        let client = accept(&listener).await?;
        let server = Arc::new(http::Server::connect(address).await?);
        tokio::spawn(serve(client, move |request| {
            let server = server.clone();
            async move { Ok(http::forward(request, &server).await) }
        }));
    }
}

async fn listen() -> Result<TcpListener, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    Ok(listener)
}

async fn accept(listener: &TcpListener) -> Result<TcpStream, Box<dyn Error>> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn serve<F>(client: TcpStream, respond: impl Fn(hyper::Request<Incoming>) -> F)
where
    F: Future<Output = Result<Response<Parts>, Infallible>>,
{
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(client), service_fn(respond));
    // A connection that breaks is the driver's to notice.
    let _ = connection.await;
}

/// All of a body; a short one comes in one piece, which is not copied.
async fn whole(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let Some(frame) = body.frame().await else { return Ok(Bytes::new()) };
    let first = frame?.into_data().unwrap_or_default();
    if body.is_end_stream() {
        return Ok(first);
    }
    let left = usize::try_from(body.size_hint().lower()).unwrap_or_default();
    let mut whole = Vec::with_capacity(first.len() + left);
    whole.extend_from_slice(&first);
    while let Some(frame) = body.frame().await {
        whole.extend_from_slice(&frame?.into_data().unwrap_or_default());
    }
    Ok(whole.into())
}

fn json(text: Parts) -> Response<Parts> {
    let mut response = Response::new(text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status(status: StatusCode) -> Response<Parts> {
    let mut response = Response::new(Parts::default());
    *response.status_mut() = status;
    response
}
