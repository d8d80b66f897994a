//! All that handshakes are made with, and may be read again.
//!
//! Invariant: a handshake that has begun goes on with what it began with; one that begins has what was read last and
//! was good.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::clients::Clients;
use crate::identity::{Identity, Source};
use crate::policy::Policy;
use crate::problem::Problem;

/// What an operator asks for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first is for clients that ask for a name which nobody has, or for none.
    pub identities: Vec<Source>,
    /// Whom to ask for certificates.
    pub clients: Clients,
    /// Versions and ciphers.
    pub policy: Policy,
    /// Of ALPN, the best first.
    pub protocols: Vec<Vec<u8>>,
}

/// What was asked for, as it was read last.
#[derive(Debug)]
pub struct Credentials {
    settings: Settings,
    // Read by the network for each handshake, written by whoever has the files read again.
    current: RwLock<Arc<Set>>,
}

/// What was read at one time.
#[derive(Debug)]
pub struct Set(Vec<Served>);

/// One identity, and the handshake that is made with it.
#[derive(Debug)]
pub struct Served {
    pub(crate) identity: Identity,
    config: Arc<ServerConfig>,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// When something in them is not as it has to be.
    pub fn load(settings: Settings) -> Result<Self, Problem> {
        let set = Set::read(&settings)?;
        Ok(Self { settings, current: RwLock::new(Arc::new(set)) })
    }

    /// Reads the files again, for the handshakes that begin from now on.
    ///
    /// # Errors
    /// When something is wrong with them; everything is as it was then.
    pub fn reload(&self) -> Result<(), Problem> {
        let set = Arc::new(Set::read(&self.settings)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(())
    }

    /// What was read last.
    #[must_use]
    pub fn current(&self) -> Arc<Set> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Set {
    fn read(settings: &Settings) -> Result<Self, Problem> {
        let provider =
            CryptoProvider { cipher_suites: settings.policy.suites()?, ..aws_lc_rs::default_provider() };
        let provider = Arc::new(provider);
        let unsound = |error: rustls::Error| {
            Problem::new(format!("TLS cannot be spoken so: {error}"), "check the --ssl options")
        };
        let base = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&settings.policy.versions())
            .map_err(unsound)?
            .with_client_cert_verifier(settings.clients.verifier(&provider)?);
        // New ones each time: who was called back must not come back with an old ticket.
        let tickets = aws_lc_rs::Ticketer::new().map_err(unsound)?;
        let mut served = Vec::with_capacity(settings.identities.len());
        for source in &settings.identities {
            let identity = source.read(&provider)?;
            settings.policy.serves(&identity, &provider.cipher_suites)?;
            let mut config = base.clone().with_cert_resolver(only(&identity.certified));
            config.alpn_protocols.clone_from(&settings.protocols);
            config.ticketer = Arc::clone(&tickets);
            served.push(Served { identity, config: Arc::new(config) });
        }
        if served.is_empty() {
            return Err(Problem::new(
                "there is no certificate to show to clients",
                "give one with --ssl-certfile",
            ));
        }
        Ok(Self(served))
    }

    /// Who answers this client: the first that has the name and that its handshake can be made with, or else the first.
    #[must_use]
    pub fn choose(&self, hello: &ClientHello<'_>) -> &Served {
        let named = |served: &&Served| hello.server_name().is_some_and(|name| served.identity.is_for(name));
        let serves = |served: &&Served| served.serves(hello);
        let all = &self.0;
        let fits = all.iter().filter(named).find(serves).or_else(|| all.iter().find(named));
        fits.or_else(|| all.iter().find(serves)).unwrap_or(&all[0])
    }
}

impl Served {
    /// Whether the client knows a signature of this key's, and a cipher that goes with it: those of TLS 1.2 are for one
    /// kind of key each.
    fn serves(&self, hello: &ClientHello<'_>) -> bool {
        let key = &self.identity.certified.key;
        let ours = self.config.crypto_provider().cipher_suites.iter();
        let mut both = ours.filter(|suite| hello.cipher_suites().contains(&suite.suite()));
        key.choose_scheme(hello.signature_schemes()).is_some()
            && both.any(|suite| suite.usable_for_signature_algorithm(key.algorithm()))
    }

    /// What to go on with.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

fn only(certified: &Arc<CertifiedKey>) -> Arc<dyn ResolvesServerCert> {
    Arc::new(SingleCertAndKey::from(CertifiedKey::clone(certified)))
}
