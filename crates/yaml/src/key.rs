//! What a section of a document may have.

/// One member of a section: for the reader, which refuses all others, and for the reference page.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What is expected, such as `a list of globs`.
    pub expects: &'static str,
    /// What it is when it is left out, as one would write it.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What the maps below it may have, where it has such.
    pub of: &'static [Self],
}

impl Key {
    /// A member.
    pub const fn new(
        name: &'static str,
        expects: &'static str,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, expects, default, about, of: &[] }
    }

    /// A member that is true or false.
    pub const fn flag(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self::new(name, "true or false", default, about)
    }

    /// The same, with maps below it that may have this.
    #[must_use]
    pub const fn of(mut self, keys: &'static [Self]) -> Self {
        self.of = keys;
        self
    }

    /// Whether the section is in force.
    pub const ENABLED: Self = Self::flag("enabled", "true", "whether it is in force");
}
