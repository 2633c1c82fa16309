//! The configuration section of an edge: its keys, and the values that were set. The reader of
//! files or of arguments fills it; the edge does not know which.

use std::collections::BTreeMap;
use std::time::Duration;

/// One key of a configuration section.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub form: Form,
    /// What holds when it is not set, for people.
    pub default: &'static str,
    /// What it means, for people.
    pub help: &'static str,
}

impl Setting {
    /// A key, with what holds when it is not set and what it means.
    pub const fn new(
        name: &'static str,
        form: Form,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, form, default, help }
    }
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text.
    Text,
    /// True or false.
    Flag,
    /// A whole number from 1 to this.
    Number(u64),
    /// A time such as `15m`.
    Duration,
    /// A list of texts.
    Texts,
    /// Lists of texts by name.
    TextLists,
}

impl Form {
    /// What it takes, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Flag => "true or false",
            Self::Number(_) => "a whole number",
            Self::Duration => "a time such as `15m`",
            Self::Texts => "a list of texts",
            Self::TextLists => "a map of lists of texts",
        }
    }
}

/// A value that was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// For [`Form::Text`].
    Text(String),
    /// For [`Form::Flag`].
    Flag(bool),
    /// For [`Form::Number`].
    Number(u64),
    /// For [`Form::Duration`].
    Duration(Duration),
    /// For [`Form::Texts`].
    Texts(Vec<String>),
    /// For [`Form::TextLists`].
    TextLists(BTreeMap<String, Vec<String>>),
}

/// A value that the edge does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingError {
    /// The key; none when several together are wrong.
    pub key: Option<&'static str>,
    /// What was expected.
    pub message: String,
}

/// The values that were set, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, SettingValue>);

impl Settings {
    /// The same settings with this value, if there is one.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: Option<SettingValue>) -> Self {
        self.0.extend(value.map(|value| (key, value)));
        self
    }

    /// A text that was set.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key) {
            Some(SettingValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A flag that was set.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.0.get(key) {
            Some(SettingValue::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// A number that was set, as far as it fits.
    pub fn number<T: TryFrom<u64>>(&self, key: &str) -> Option<T> {
        match self.0.get(key) {
            Some(SettingValue::Number(number)) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A time that was set.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        match self.0.get(key) {
            Some(SettingValue::Duration(duration)) => Some(*duration),
            _ => None,
        }
    }

    /// A list that was set; empty when none was.
    pub fn texts(&self, key: &str) -> &[String] {
        match self.0.get(key) {
            Some(SettingValue::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// Lists by name that were set; empty when none were.
    pub fn text_lists(&self, key: &str) -> BTreeMap<String, Vec<String>> {
        match self.0.get(key) {
            Some(SettingValue::TextLists(lists)) => lists.clone(),
            _ => BTreeMap::new(),
        }
    }
}
