//! The client's side of TLS, by rustls: whom to trust, and the handshake on a connection.
//!
//! Reads certificates when a driver is opened, never later.

use super::{Connection, Stream};
use crate::op::{ErrorClass, Failure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// Trusts the certificates in the PEM file `authority`, or those of the system; or anything where `insecure`.
/// Errors: `client`, where a file cannot be read or holds no certificate.
pub fn client(authority: Option<&Path>, insecure: bool) -> Result<Arc<ClientConfig>, Failure> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?;
    let config = if insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer { provider }))
            .with_no_client_auth()
    } else {
        builder
            .with_root_certificates(trusted(authority)?)
            .with_no_client_auth()
    };
    Ok(Arc::new(config))
}

fn trusted(authority: Option<&Path>) -> Result<RootCertStore, Failure> {
    let mut store = RootCertStore::empty();
    match authority {
        Some(path) => {
            let unreadable = |reason: String| unusable(format!("{}: {reason}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path)
                .map_err(|error| unreadable(error.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
                store
                    .add(certificate)
                    .map_err(|error| unreadable(error.to_string()))?;
            }
            if store.is_empty() {
                return Err(unreadable("the file holds no certificate".to_owned()));
            }
        }
        // A system's store may hold certificates that rustls does not take; the others count.
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(store)
}

fn unusable(reason: String) -> Failure {
    Failure::new(ErrorClass::Client, format!("cannot set up TLS: {reason}"))
}

/// Shakes hands on a fresh TCP connection. `host` is the name that the certificate must be for.
/// Errors: `connect`, where the server is not trusted or does not speak TLS.
pub async fn handshake(
    connection: Connection,
    config: Arc<ClientConfig>,
    host: &str,
) -> Result<Connection, Failure> {
    let refused =
        |reason: String| Failure::new(ErrorClass::Connect, format!("TLS with {host}: {reason}"));
    let peer = connection.peer();
    let Stream::Tcp(stream) = connection.into_stream() else {
        return Err(refused("only TCP carries it".to_owned()));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| refused(error.to_string()))?;
    let stream = tokio_rustls::TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|error| refused(error.to_string()))?;
    Ok(Connection::new(Stream::Tls(Box::new(stream)), peer))
}

/// Trusts any certificate, for tests with one signed by nobody; signatures are checked all the same.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
