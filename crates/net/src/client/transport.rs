//! A connection, plain or encrypted, as hyper wants it.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::client::TlsStream;

/// A connection that gives up when the other end takes nothing for too long.
///
/// Whoever sent a request may have gone when its deadline passed; hyper still holds what is left to
/// write, and nobody else would ever end that.
pub(super) struct Transport {
    stream: Stream,
    peer: IpAddr,
    patience: Duration,
    /// Runs while the other end takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The bytes of a connection.
pub(super) enum Stream {
    Plain(TcpStream),
    Secured(Box<TlsStream<TcpStream>>),
}

type Writer = dyn AsyncWrite + Unpin;

/// The address that an answer came from, as hyper hands it on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

impl Transport {
    /// A connection to an address, which may take nothing for as long as `patience`.
    pub(super) const fn new(stream: Stream, peer: IpAddr, patience: Duration) -> Self {
        Self { stream, peer, patience, stalled: None }
    }

    /// Takes a step that writes. A step that makes no progress for too long is an error.
    fn write_step<T>(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(Pin<&mut Writer>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = step(self.stream.writer(), cx) {
            self.stalled = None;
            return Poll::Ready(done);
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Stream {
    fn writer(&mut self) -> Pin<&mut Writer> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Secured(stream) => Pin::new(stream.as_mut()),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Secured(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
        }
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
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Secured(stream) => stream.is_write_vectored(),
        }
    }
}

impl Connection for Transport {
    fn connected(&self) -> Connected {
        Connected::new().extra(Peer(self.peer))
    }
}
