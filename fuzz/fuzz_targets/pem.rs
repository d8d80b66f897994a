//! Files of certificates and keys.
#![no_main]

use std::io::Write;

use bridgehead_tls::{Clients, Credentials, Demand, Files, Policy, Settings, Source, Version};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("bridgehead-fuzz-{}.pem", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("a folder for it");
    let _ = Credentials::load(Settings {
        identities: vec![Source::Files(Files { certificates: path.clone(), key: Some(path), password: None })],
        clients: Clients { demand: Demand::None, authorities: None, revocations: Vec::new() },
        policy: Policy { versions: vec![Version::Tls13], ciphers: None },
        protocols: Vec::new(),
    });
});
