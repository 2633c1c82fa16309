//! chio.yaml while a kernel serves: a hangup signal has all of it taken, or nothing of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use chio_core::crypto::PublicKey;
use chio_core::hash::sha256_hex;
use chio_kernel::{ChioKernel, KernelConfig};
use chio_policy::own::Own;
use chio_store::OpenStore;

use crate::access::AccessConfig;
use crate::clock;
use crate::config::Config;
use crate::io::Io;
use crate::listeners::Transport;
use crate::look::Look;
use crate::policies::{Policies, Source};
use crate::trust::{check_kernel, trust_store};

/// A configuration that is read again when an operator asks for it.
pub(crate) struct Reload {
    file: PathBuf,
    own: Arc<Own>,
    fixed: Vec<(&'static str, String)>,
    /// The key that answers for users of clients, which the kernel trusts besides.
    client_user: Option<PublicKey>,
}

impl Reload {
    /// The configuration that a process has begun with.
    pub(crate) fn new(file: &Path, config: &Config, io: &mut Io<'_>) -> Self {
        let (file, own) = (file.to_owned(), Arc::clone(&io.own));
        Self { file, own, fixed: fixed(config, io), client_user: None }
    }

    /// The same, with a key that the kernel trusts besides.
    pub(crate) fn trusting(self, client_user: Option<PublicKey>) -> Self {
        Self { client_user, ..self }
    }

    /// Takes the configuration as it is now: the policies with their files, whom the kernel trusts,
    /// and how long it waits.
    ///
    /// # Errors
    /// With everything that is wrong; then everything stays as it was.
    pub(crate) async fn take(
        &self,
        policies: &mut Policies,
        kernel: &ChioKernel,
        store: &OpenStore,
    ) -> Result<(), Vec<String>> {
        let mut said = Vec::new();
        let read = self.read(policies, kernel, store, &mut said).await;
        let (others, config) = read.map_err(|error| {
            let lines = String::from_utf8_lossy(&said);
            let lines = lines.lines().map(str::to_owned);
            lines.chain([format!("{error:#}")]).collect::<Vec<_>>()
        })?;
        policies.replace(others);
        kernel.set_pipeline(policies.pipeline());
        kernel.reconfigure(&config);
        Ok(())
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// Reads all of it, and changes nothing.
    async fn read(
        &self,
        policies: &Policies,
        kernel: &ChioKernel,
        store: &OpenStore,
        said: &mut Vec<u8>,
    ) -> Result<(Policies, KernelConfig)> {
        let (config, mut trusted) = self.read_file(said)?;
        trusted.trusted_approvers.extend(self.client_user.clone());
        trust_store(&mut trusted, store).await?;
        check_kernel(&trusted, kernel.public_key())?;
        let source = policies.in_force.source.renamed(&config.policy);
        let trial = config.shadow_policy.as_ref().map(|reference| match &policies.on_trial {
            Some(trial) => trial.source.renamed(reference),
            None => Source::new(reference, &config.folder, &self.own),
        });
        let loaded = Policies::load(source, trial).await;
        let loaded = loaded.map_err(|(reference, unusable)| {
            anyhow!("the policy `{reference}`: {}", unusable.lines().join("; "))
        });
        Ok((loaded.context("no policy is taken")?, trusted))
    }

    /// Reads the file, with the files of keys that it names.
    fn read_file(&self, said: &mut Vec<u8>) -> Result<(Config, KernelConfig)> {
        let mut io = Io {
            input: None,
            output: &mut std::io::sink(),
            errors: said,
            folder: Path::new(""),
            now: clock::now(),
            own: Arc::clone(&self.own),
            look: Look::default(),
        };
        let config = Config::load(&mut io, &self.file)?;
        let now = fixed(&config, &mut io);
        let changed = self.fixed.iter().zip(&now).filter(|(before, now)| before != now);
        let changed: Vec<&str> = changed.map(|((name, _), _)| *name).collect();
        if !changed.is_empty() {
            bail!("{} changed, which takes a new start", chio_yaml::listed(&changed, "and"));
        }
        let trusted = config.kernel.config(&mut io)?;
        Ok((config, trusted))
    }
}

/// What a running process cannot change, and its names in the file.
fn fixed(config: &Config, io: &mut Io<'_>) -> Vec<(&'static str, String)> {
    let mut listeners = format!("{:?}", config.listeners);
    for listener in &config.listeners {
        let Transport::Http { access: AccessConfig::Tokens { files, jwt }, .. } =
            &listener.transport
        else {
            continue;
        };
        let keys = jwt.as_ref().and_then(|jwt| jwt.keys_file.as_ref());
        for file in files.iter().map(|(_, file)| file).chain(keys) {
            // A file that cannot be read is another than one that can.
            let content = io.read(file).unwrap_or_default();
            listeners.push_str(&sha256_hex(&content));
        }
    }
    vec![
        ("store", format!("{:?}", config.location)),
        ("servers", format!("{:?}", config.servers)),
        ("listeners", listeners),
        ("edges", format!("{:?}", config.edges)),
    ]
}
