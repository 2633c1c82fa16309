//! A connection, plain or encrypted, as hyper uses it.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection that fails when the peer accepts no bytes for too long.
///
/// The caller may be gone when the deadline of its request has passed; hyper still holds the rest of
/// the request, and nothing else would ever end that.
pub(super) struct Transport {
    stream: Box<dyn Stream>,
    peer: IpAddr,
    write_timeout: Duration,
    /// Runs while the peer accepts no bytes.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The bytes of a connection: TCP, or TLS over it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The address that a response came from, as hyper passes it on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

impl Transport {
    /// A connection to `peer`, which may accept no bytes for as long as `write_timeout`.
    pub(super) fn new(
        stream: impl Stream + 'static,
        peer: IpAddr,
        write_timeout: Duration,
    ) -> Self {
        Self { stream: Box::new(stream), peer, write_timeout, stalled: None }
    }

    /// Polls a write. Without progress for too long it is an error.
    fn write_step<T>(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(Pin<&mut Box<dyn Stream>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = step(Pin::new(&mut self.stream), cx) {
            self.stalled = None;
            return Poll::Ready(done);
        }
        let write_timeout = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(write_timeout)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().write_step(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().write_step(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().write_step(cx, |stream, cx| stream.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().write_step(cx, |stream, cx| stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connection for Transport {
    fn connected(&self) -> Connected {
        Connected::new().extra(Peer(self.peer))
    }
}
