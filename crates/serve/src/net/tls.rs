//! TLS: the server's certificate and key, and the authorities of client certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The TLS files, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate and its chain up to the authority.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
    /// Authorities for client certificates, one of which must have signed a client's; `None`: no
    /// client certificate is required.
    pub clients: Option<PathBuf>,
}

/// Why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or has the wrong content.
    #[error("{}: expected {expected} in PEM: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
        /// The cause.
        why: String,
    },
    /// The files do not fit together.
    #[error("TLS: {0}")]
    Refused(String),
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |why: String| TlsError::File { path: path.into(), expected: "certificates", why };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| failed(e.to_string()))?.collect();
    let all = all.map_err(|e| failed(e.to_string()))?;
    if all.is_empty() { Err(failed("found none".into())) } else { Ok(all) }
}

/// Builds the TLS acceptor from these files.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let refused = |e: &dyn std::fmt::Display| TlsError::Refused(e.to_string());
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| TlsError::File {
        path: files.key.clone(),
        expected: "a private key",
        why: e.to_string(),
    })?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| refused(&e))?;
    let builder = match &files.clients {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for c in certificates(path)? {
                roots.add(c).map_err(|e| refused(&e))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|e| refused(&e))?)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|e| refused(&e))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
