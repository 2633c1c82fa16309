//! What is logged while a test runs.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

/// Where there is only one subscriber, `tracing` asks that of the thread that comes first to a place of
/// the code, and remembers that it wants nothing from there. So there is always another.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock that no test poisons").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that this thread logs, as long as it lives. Tasks of a current-thread runtime count.
pub struct CapturedLog {
    written: Written,
    _guard: DefaultGuard,
}

impl CapturedLog {
    /// Captures from now on what is logged by default.
    #[must_use]
    pub fn start() -> Self {
        Self::from_level(LevelFilter::INFO)
    }

    /// Captures from now on all that there is to log.
    #[must_use]
    pub fn everything() -> Self {
        Self::from_level(LevelFilter::TRACE)
    }

    fn from_level(level: LevelFilter) -> Self {
        let written = Written::default();
        let writer = written.clone();
        let format = tracing_subscriber::fmt::format().without_time().with_ansi(false);
        let format = format.with_level(false).with_target(false);
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
        let subscriber = subscriber.with_max_level(level);
        LazyLock::force(&ANOTHER);
        let guard = set_default(subscriber.event_format(format).finish());
        Self { written, _guard: guard }
    }

    /// The messages so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let written = self.written.0.lock().expect("a lock that no test poisons");
        String::from_utf8_lossy(&written).lines().map(str::to_owned).collect()
    }
}
