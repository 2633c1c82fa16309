//! A connection, plain or encrypted, as hyper wants it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection, plain or encrypted.
pub(super) enum Transport {
    Plain(TcpStream),
    Secured(Box<TlsStream<TcpStream>>),
}

impl From<TcpStream> for Transport {
    fn from(stream: TcpStream) -> Self {
        Self::Plain(stream)
    }
}

impl From<TlsStream<TcpStream>> for Transport {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        Self::Secured(Box::new(stream))
    }
}

/// Runs the same on whichever stream it is.
macro_rules! on_either {
    ($transport:expr, $stream:ident => $run:expr) => {
        match $transport.get_mut() {
            Transport::Plain($stream) => {
                let $stream = Pin::new($stream);
                $run
            }
            Transport::Secured($stream) => {
                let $stream = Pin::new($stream.as_mut());
                $run
            }
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        on_either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, stream => stream.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(self, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Secured(stream) => stream.is_write_vectored(),
        }
    }
}

impl Connection for Transport {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
