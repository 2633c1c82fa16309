//! Sets of hosts as documents have them: `example.com`, `*.example.com`, `*`, `10.0.0.0/8`.

use std::collections::HashMap;
use std::net::IpAddr;

use chio_net::address::Block;
use url::Host;

use chio_yaml::Section;

/// Hosts of a list. Asking costs as much for a thousand of them as for one.
#[derive(Debug, Default)]
pub(crate) struct HostSet {
    any: bool,
    /// Whole names, and addresses in the form of browsers, with what was written for them.
    exact: HashMap<String, String>,
    /// Names whose sub-domains are meant.
    below: HashMap<String, String>,
    blocks: Vec<(Block, String)>,
}

impl HostSet {
    /// The list of a section's member. What is no host is noted as a problem.
    pub(crate) fn read(section: &Section<'_>, key: &str) -> Self {
        let mut set = Self::default();
        for item in section.texts(key) {
            if let Err(why) = set.add(item.text) {
                section.problem_at(item.place, why);
            }
        }
        set
    }

    /// Adds an entry of a document.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), &'static str> {
        let written = text.to_owned();
        if text == "*" {
            self.any = true;
            return Ok(());
        }
        if let Ok(block) = text.parse::<Block>() {
            self.blocks.push((block, written));
            return Ok(());
        }
        if text.contains("://") || text.contains('/') {
            return Err("expected a host such as `example.com` or `*.example.com`, found a URL, \
                        a path or a block of addresses with bits behind its prefix");
        }
        let (name, below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        match Host::parse(name) {
            Ok(Host::Domain(name)) if !name.contains('*') => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                let names = if below { &mut self.below } else { &mut self.exact };
                names.insert(name, written);
                Ok(())
            }
            Ok(Host::Domain(_)) => Err("expected `*` only as the whole first label, as in \
                                        `*.example.com`, found it elsewhere"),
            Ok(address) if !below => {
                self.exact.insert(plain(&address.to_string()).to_owned(), written);
                Ok(())
            }
            _ if text.contains(':') => Err("expected a host without a port, found one with it"),
            _ => Err("expected a host such as `example.com`, `*.example.com` or `*`, found \
                      something else"),
        }
    }

    /// What was written for a host, if it is in the set. The host is in one form, as facts have it.
    pub(crate) fn find(&self, host: &str) -> Option<&str> {
        let host = plain(host);
        if let Some(written) = self.exact.get(host) {
            return Some(written);
        }
        // A name of more than 253 bytes is none, whatever its ending.
        if !self.below.is_empty() && host.len() <= 253 {
            let mut rest = host;
            while let Some((_, parent)) = rest.split_once('.') {
                if let Some(written) = self.below.get(parent) {
                    return Some(written);
                }
                rest = parent;
            }
        }
        if !self.blocks.is_empty()
            && let Ok(address) = host.parse::<IpAddr>()
        {
            let address = address.to_canonical();
            let found = self.blocks.iter().find(|(block, _)| block.contains(address));
            if let Some((_, written)) = found {
                return Some(written);
            }
        }
        self.any.then_some("*")
    }

    /// A host of the set, to prove with that it is there.
    pub(crate) fn example(&self) -> Option<String> {
        // The smallest, since maps have no order and a proof must be the same each time.
        if let Some(name) = self.exact.keys().min() {
            return Some(bracketed(name));
        }
        if let Some(name) = self.below.keys().min() {
            return Some(format!("www.{name}"));
        }
        if let Some((block, _)) = self.blocks.first() {
            let text = block.to_string();
            let first = text.split('/').next().unwrap_or_default();
            return Some(bracketed(first));
        }
        self.any.then(|| "www.example.com".to_owned())
    }
}

/// A host as a URL has it.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// An address without the brackets that URLs put around it.
fn plain(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::HostSet;

    fn set(texts: &[&str]) -> HostSet {
        let mut set = HostSet::default();
        for text in texts {
            set.add(text).unwrap();
        }
        set
    }

    #[test]
    fn a_pattern_means_the_host_or_what_is_below_it() {
        for (pattern, host, holds) in [
            ("example.com", "example.com", true),
            ("Example.COM.", "example.com", true),
            ("example.com", "www.example.com", false),
            ("example.com", "notexample.com", false),
            ("example.com", "example.com.evil.org", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "aexample.com", false),
            ("*", "anything.example", true),
            ("bücher.example", "xn--bcher-kva.example", true),
            ("127.1", "127.0.0.1", true),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("::1", "[::1]", true),
            ("[::1]", "::1", true),
        ] {
            assert_eq!(set(&[pattern]).find(host).is_some(), holds, "{pattern} {host}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["https://a.example", "a.example:443", "a*.example", "*.*.example", "a b", ""] {
            assert!(HostSet::default().add(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_example_of_a_set_is_in_it() {
        for patterns in [&["b.example", "a.example"][..], &["*.example"], &["*"], &["::1"]] {
            let set = set(patterns);
            let example = set.example().unwrap();
            assert!(set.find(&example).is_some(), "{example}");
        }
        assert_eq!(HostSet::default().example(), None);
    }
}
