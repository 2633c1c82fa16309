//! The log of a process that serves: lines for its operator, on standard error.

use std::fmt;
use std::io::{self, Write};
use std::mem;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::text;

/// How the log is written.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LogArgs {
    /// How the log on standard error is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// How much is logged; `debug` has a line for each receipt of a call. Standard error has to be
    /// read: a full pipe stops what wants to log
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: LogLevel,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
}

impl LogArgs {
    /// Logs from now on.
    pub(crate) fn start(&self) {
        let level = match self.log_level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        // What libraries have to tell may hold what must not be logged.
        let ours = Targets::new().with_target("chio", level);
        let lines = layer().with_writer(io::stderr).with_ansi(false);
        // If standard error is closed, there is no way to tell.
        let lines = lines.log_internal_errors(false);
        let registry = tracing_subscriber::registry();
        let started = match self.log_format {
            LogFormat::Text => {
                let lines = lines.event_format(Text).fmt_fields(Fields);
                registry.with(lines).with(ours).try_init()
            }
            LogFormat::Json => {
                let lines = lines.json().flatten_event(true).with_current_span(false);
                let lines = lines.with_writer(|| VisibleJson(io::stderr()));
                registry.with(lines).with(ours).try_init()
            }
        };
        debug_assert!(started.is_ok(), "a process starts its log once");
    }
}

/// Writes lines of JSON with every character of a name seen or escaped; each line comes in one piece.
struct VisibleJson<W>(W);

impl<W: Write> Write for VisibleJson<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(text::visible_json(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// `chio: ` and the message, with the call that it is about.
struct Text;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        context.field_format().format_fields(Writer::new(&mut line), event)?;
        if let Some(call) = context.lookup_current() {
            let fields = call.extensions();
            let fields = fields.get::<FormattedFields<N>>().map_or("", |fields| &fields.fields);
            line.push_str(&format!(" ({fields})"));
        }
        writeln!(writer, "chio: {}", text::plain(&line))
    }
}

/// The message, and ` name=value` for every other field. A call's span is written when it begins,
/// whether anything is logged or not, so plain names are copied and only others are quoted.
struct Fields;

impl<'w> FormatFields<'w> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line { writer, written: Ok(()), separator: "" };
        fields.record(&mut line);
        line.written
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
    separator: &'static str,
}

impl Line<'_> {
    fn begin(&mut self, field: &Field) -> fmt::Result {
        self.writer.write_str(mem::replace(&mut self.separator, " "))?;
        if field.name() == "message" {
            return Ok(());
        }
        self.writer.write_str(field.name())?;
        self.writer.write_char('=')
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b':');
        if value.is_empty() || !value.bytes().all(plain) {
            return self.record_debug(field, &value);
        }
        self.written =
            self.written.and(self.begin(field)).and_then(|()| self.writer.write_str(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.written =
            self.written.and(self.begin(field)).and_then(|()| write!(self.writer, "{value:?}"));
    }
}
