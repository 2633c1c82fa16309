//! Key files: the 64 hex digits of an Ed25519 seed and a newline.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chio_core::crypto::{Keypair, PublicKey};
use zeroize::Zeroizing;

use crate::files::{Access, is_dash, shown};
use crate::io::Io;

/// More than any key file holds, blanks and all.
const MAX_LEN: usize = 1024;
/// What a file begins with that has a public key: bare digits are a secret.
const PUBLIC: &str = "chio-public-key ";
/// The ending of files that have a public key, however that is written.
const PUBLIC_ENDING: &str = "pub";

/// A public key as a file has it.
pub(crate) fn public_line(key: &PublicKey) -> String {
    format!("{PUBLIC}{key}\n")
}

impl Io<'_> {
    /// Reads a key file, or a key from standard input for `-`.
    pub(crate) fn read_key(&mut self, path: &Path) -> Result<Keypair> {
        // With all its room from the start, so that no copy of the seed is left behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_LEN));
        let limit = u64::try_from(MAX_LEN)?;
        let read = if is_dash(path) {
            self.standard_input()?.take(limit).read_to_end(&mut bytes)
        } else {
            let file = self.open_secret(path)?;
            file.take(limit).read_to_end(&mut bytes)
        };
        read.with_context(|| format!("cannot read {}", shown(path)))?;
        let text = std::str::from_utf8(&bytes).map(str::trim);
        let text = text.with_context(|| format!("{} is not a key file", shown(path)))?;
        self.own.protect(&self.folder.join(path), true);
        self.own.withhold(text);
        if text.starts_with(PUBLIC) {
            bail!("{} has a public key, and the secret one is needed to sign", shown(path));
        }
        let key = Keypair::from_seed_hex(text);
        key.with_context(|| format!("{} is not a key file", shown(path)))
    }

    /// The public key in a file that has one and no secret.
    fn public_key_in(&self, path: &Path) -> Option<PublicKey> {
        // It may be a secret all the same.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_LEN));
        let limit = u64::try_from(MAX_LEN).ok()?;
        self.open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?.trim();
        let is_named_so = path.extension().is_some_and(|ending| ending == PUBLIC_ENDING);
        let key = text.strip_prefix(PUBLIC).or_else(|| Some(text).filter(|_| is_named_so));
        PublicKey::from_hex(key?.trim()).ok()
    }

    /// Writes a key file that only its owner can read.
    pub(crate) fn write_key(&self, path: &Path, key: &Keypair, replace: bool) -> Result<()> {
        if is_dash(path) {
            bail!("expected a file for the secret key, found `-`: it is never printed");
        }
        let mut content = Zeroizing::new(Vec::with_capacity(MAX_LEN));
        content.extend_from_slice(key.seed_hex().as_bytes());
        content.push(b'\n');
        self.write_file(path, &content, Access::Private, replace)
    }

    /// Reads a public key: as it is written, as a file has it, or the public half of a key file.
    pub(crate) fn public_key(&mut self, option: &str, text: &str) -> Result<PublicKey> {
        if let Ok(key) = PublicKey::from_hex(text) {
            return Ok(key);
        }
        let path = Path::new(text);
        if !is_dash(path) && !self.folder.join(path).exists() {
            // The text is not repeated: it may be a secret with a slip of the pen.
            bail!(
                "expected a public key (64 hex digits), a file with one or a key file for \
                 {option}, found none of them"
            );
        }
        if !is_dash(path)
            && let Some(key) = self.public_key_in(path)
        {
            return Ok(key);
        }
        let key = self.read_key(path).with_context(|| format!("cannot take {option}"))?;
        Ok(key.public_key().clone())
    }

    /// Whether a text is a public key, or the name of a file that may hold one.
    pub(crate) fn is_public_key(&self, text: &str) -> bool {
        let path = Path::new(text);
        PublicKey::from_hex(text).is_ok() || is_dash(path) || self.folder.join(path).is_file()
    }

    /// Reads several public keys.
    pub(crate) fn public_keys(&mut self, option: &str, texts: &[String]) -> Result<Vec<PublicKey>> {
        texts.iter().map(|text| self.public_key(option, text)).collect()
    }
}
