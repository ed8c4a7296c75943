//! Our own stdin and stdout → an async reader and writer.
//!
//! Pipes and sockets are read and written without a thread in between, which would be most of the cost
//! of a small message. Files and terminals do not support that: a thread reads them, and they are
//! written synchronously.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// The reader of our stdin.
#[derive(Debug)]
pub struct Stdin(Source);

/// The writer of our stdout.
#[derive(Debug)]
pub struct Stdout(Sink);

#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Thread(Chunks),
}

#[derive(Debug)]
enum Sink {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    File(File),
}

/// The kind of a file descriptor.
enum Kind {
    Pipe(OwnedFd),
    Socket(UnixStream),
    File(File),
}

/// Our stdin. Call it within a runtime, and only once: two readers would share the input.
pub fn stdin() -> io::Result<Stdin> {
    let source = match Kind::of(io::stdin())? {
        Kind::Pipe(descriptor) => {
            Source::Pipe(match reopen("0", |it, path| it.open_receiver(path)) {
                Some(receiver) => receiver,
                None => pipe::Receiver::from_owned_fd(descriptor)?,
            })
        }
        Kind::Socket(stream) => Source::Socket(stream),
        Kind::File(file) => Source::Thread(Chunks::read(file)?),
    };
    Ok(Stdin(source))
}

/// Our stdout. Call it within a runtime. Nothing else may print from then on.
pub fn stdout() -> io::Result<Stdout> {
    let sink = match Kind::of(io::stdout())? {
        Kind::Pipe(descriptor) => Sink::Pipe(match reopen("1", |it, path| it.open_sender(path)) {
            Some(sender) => sender,
            None => pipe::Sender::from_owned_fd(descriptor)?,
        }),
        Kind::Socket(stream) => Sink::Socket(stream),
        Kind::File(file) => Sink::File(file),
    };
    Ok(Stdout(sink))
}

impl Kind {
    fn of(stream: impl AsFd) -> io::Result<Self> {
        let file = File::from(stream.as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() {
            return Ok(Self::Pipe(file.into()));
        }
        if kind.is_socket() {
            let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(file.try_clone()?));
            // A network socket has no such address and is treated like a file.
            if stream.local_addr().is_ok() {
                stream.set_nonblocking(true)?;
                return Ok(Self::Socket(UnixStream::from_std(stream)?));
            }
        }
        Ok(Self::File(file))
    }
}

/// Reopens the pipe. O_NONBLOCK is shared with every process that inherited the pipe, our own stderr
/// included; a new open file description has its own.
fn reopen<T>(number: &str, open: impl Fn(&pipe::OpenOptions, &str) -> io::Result<T>) -> Option<T> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    open(&pipe::OpenOptions::new(), &format!("/proc/self/fd/{number}")).ok()
}

impl AsyncRead for Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Source::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Source::Socket(stream) => Pin::new(stream).poll_read(cx, buffer),
            Source::Thread(chunks) => chunks.poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Sink::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Sink::Socket(stream) => Pin::new(stream).poll_write(cx, bytes),
            Sink::File(file) => Poll::Ready(file.write(bytes)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Sink::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Sink::Socket(stream) => Pin::new(stream).poll_flush(cx),
            Sink::File(file) => Poll::Ready(file.flush()),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Sink::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Sink::Socket(stream) => Pin::new(stream).poll_shutdown(cx),
            Sink::File(file) => Poll::Ready(file.flush()),
        }
    }
}

/// What a thread has read, a few chunks ahead at most.
#[derive(Debug)]
struct Chunks {
    inbox: mpsc::Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    used: usize,
}

impl Chunks {
    fn read(mut file: File) -> io::Result<Self> {
        const CHUNK: usize = 64 << 10;
        let (outbox, inbox) = mpsc::channel(2);
        // The thread may be blocked in `read` when the process exits; it holds nothing that matters.
        thread::Builder::new().name("trunkline-stdin".into()).spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let result = match file.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(count) => {
                        chunk.truncate(count);
                        Ok(chunk)
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = result.is_err();
                if outbox.blocking_send(result).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self { inbox, current: Vec::new(), used: 0 })
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.used == self.current.len() {
            match ready!(self.inbox.poll_recv(cx)) {
                Some(chunk) => (self.current, self.used) = (chunk?, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let rest = &self.current[self.used..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.used += count;
        Poll::Ready(Ok(()))
    }
}
