//! NBD under TLS: data is transferred both ways, clients without TLS are rejected where it is
//! required, clients without a valid certificate are rejected, and plaintext is not processed as
//! protected input.

use crate::rig;

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headtime_disk::DriveConfig;
use headtime_serve::internals::net::tls::{TlsError, TlsFiles, acceptor};
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{CAPACITY, Server, Service};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const SECTORS: u64 = 8192;
const LIST: u32 = 3;
const EXPORT_NAME: u32 = 1;
const START_TLS: u32 = 5;
const ACK: u32 = 1;
const TLS_REQUIRED: u32 = (1 << 31) + 5;

type Protected = StreamOwned<ClientConnection, TcpStream>;

/// An authority that signs certificates.
struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// Returns a certificate and its key.
    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::new(vec![name.into()]).unwrap().signed_by(&key, &self.issuer).unwrap(), key)
    }
}

/// A server on loopback, and the authority of its certificate.
struct Bench {
    dir: TempDir,
    authority: Authority,
    server: Server,
}

fn files(dir: &Path, clients: bool) -> TlsFiles {
    let at = |name: &str| dir.join(name);
    TlsFiles { certificate: at("cert.pem"), key: at("key.pem"), clients: clients.then(|| at("ca.pem")) }
}

impl Bench {
    fn new(required: bool, clients: bool) -> Bench {
        let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let (certificate, key) = authority.sign("localhost");
        fs::write(dir.path().join("cert.pem"), certificate.pem()).unwrap();
        fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
        fs::write(dir.path().join("ca.pem"), authority.certificate.pem()).unwrap();
        let (drive, _) = rig::drive(DriveConfig::default());
        let spec = ExportSpec {
            name: "data".into(),
            description: String::new(),
            first: 0,
            sectors: SECTORS,
            read_only: false,
            weight: 100,
        };
        let exports = Exports::new(vec![spec], 1 << 20, 512).unwrap();
        let mut service = Service::new(vec!["tcp:127.0.0.1:0".parse().unwrap()], exports, Arc::new(|_, _| {}));
        service.tls = Some((acceptor(&files(dir.path(), clients)).unwrap(), required));
        service.handshake = Duration::from_secs(2);
        let server = Server::start(rig::core(CAPACITY), drive, service).unwrap();
        Bench { dir, authority, server }
    }

    /// Connects a client and exchanges greetings.
    fn greet(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.ports()[0])).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream
    }

    /// Continues a connection under TLS, with or without a client certificate.
    fn protect(&self, mut stream: TcpStream, own: Option<(rcgen::Certificate, KeyPair)>) -> Protected {
        stream.write_all(&option(START_TLS, b"")).unwrap();
        assert_eq!(reply(&mut stream, START_TLS).unwrap().0, ACK);
        self.handshake(stream, own)
    }

    fn handshake(&self, stream: TcpStream, own: Option<(rcgen::Certificate, KeyPair)>) -> Protected {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.certificate.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
    }
}

fn option(code: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&code.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// Returns the type and the data of one reply to an option.
fn reply(stream: &mut impl Read, to: u32) -> io::Result<(u32, Vec<u8>)> {
    let mut head = [0; 20];
    stream.read_exact(&mut head)?;
    assert_eq!(&head[..8], &0x0003_e889_0455_65a9u64.to_be_bytes(), "a reply's magic");
    assert_eq!(&head[8..12], &to.to_be_bytes());
    let mut data = vec![0; u32::from_be_bytes(head[16..].try_into().unwrap()) as usize];
    stream.read_exact(&mut data)?;
    Ok((u32::from_be_bytes(head[12..16].try_into().unwrap()), data))
}

/// Opens the export; returns its size.
fn open(stream: &mut (impl Read + Write)) -> io::Result<u64> {
    stream.write_all(&option(EXPORT_NAME, b"data"))?;
    let mut opened = [0; 10];
    stream.read_exact(&mut opened)?;
    Ok(u64::from_be_bytes(opened[..8].try_into().unwrap()))
}

/// Sends a request; returns the data of its answer.
fn ask(stream: &mut (impl Read + Write), kind: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
    request.extend_from_slice(&0u16.to_be_bytes());
    request.extend_from_slice(&kind.to_be_bytes());
    request.extend_from_slice(&7u64.to_be_bytes());
    request.extend_from_slice(&offset.to_be_bytes());
    request.extend_from_slice(&length.to_be_bytes());
    request.extend_from_slice(data);
    stream.write_all(&request).unwrap();
    let mut head = [0; 16];
    stream.read_exact(&mut head).unwrap();
    assert_eq!((&head[..4], &head[4..8]), (&0x6744_6698u32.to_be_bytes()[..], &[0; 4][..]));
    let mut answer = vec![0; if kind == 0 { length as usize } else { 0 }];
    stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn data_goes_both_ways_under_tls() {
    let bench = Bench::new(true, false);
    let mut client = bench.protect(bench.greet(), None);
    assert_eq!(open(&mut client).unwrap(), SECTORS * 512);
    // More than one record of TLS, and than one read of the socket.
    let data: Vec<u8> = (0..600_064u32).map(|i| ((i * 7) >> 3) as u8).collect();
    ask(&mut client, 1, 4096, data.len() as u32, &data);
    ask(&mut client, 3, 0, 0, &[]);
    assert!(ask(&mut client, 0, 4096, data.len() as u32, &[]) == data, "what is read is not what was written");
    drop(client);
    bench.server.stop().unwrap();
}

#[test]
fn where_tls_is_required_nothing_is_had_without_it() {
    let bench = Bench::new(true, false);
    let mut client = bench.greet();
    client.write_all(&option(LIST, b"")).unwrap();
    assert_eq!(reply(&mut client, LIST).unwrap().0, TLS_REQUIRED);
    assert!(open(&mut client).is_err(), "an export was opened in the clear");
    bench.server.stop().unwrap();
}

#[test]
fn where_tls_is_offered_a_client_may_do_without() {
    let bench = Bench::new(false, false);
    assert_eq!(open(&mut bench.greet()).unwrap(), SECTORS * 512);
    assert_eq!(open(&mut bench.protect(bench.greet(), None)).unwrap(), SECTORS * 512);
    bench.server.stop().unwrap();
}

#[test]
fn only_clients_of_the_authority_come_in_where_one_is_named() {
    let bench = Bench::new(true, true);
    let known = bench.authority.sign("client");
    assert_eq!(open(&mut bench.protect(bench.greet(), Some(known))).unwrap(), SECTORS * 512);
    let stranger = Authority::new().sign("client");
    for own in [None, Some(stranger)] {
        assert!(open(&mut bench.protect(bench.greet(), own)).is_err(), "a stranger came in");
    }
    bench.server.stop().unwrap();
}

#[test]
fn what_was_said_in_the_clear_is_not_taken_for_what_is_said_under_tls() {
    let bench = Bench::new(true, false);
    let mut stream = bench.greet();
    // An attacker adds an option after the client's, in one piece, so that the server reads both at
    // once. It must not open the export under the client's protection; the server disconnects.
    let mut said = option(START_TLS, b"");
    said.extend_from_slice(&option(EXPORT_NAME, b"data"));
    stream.write_all(&said).unwrap();
    let mut heard = vec![];
    let _ = stream.read_to_end(&mut heard);
    assert!(heard.len() <= 20, "more than an answer to STARTTLS: {heard:?}");
    assert!(bench.handshake(stream, None).write_all(&option(LIST, b"")).is_err());
    bench.server.stop().unwrap();
}

#[test]
fn a_client_that_falls_silent_in_the_handshake_is_sent_away() {
    let bench = Bench::new(true, false);
    let mut stream = bench.greet();
    stream.write_all(&option(START_TLS, b"")).unwrap();
    assert_eq!(reply(&mut stream, START_TLS).unwrap().0, ACK);
    let begun = Instant::now();
    // The end of the stream, or an error: both mean that it was closed; a timeout would be another
    // error.
    match stream.read(&mut [0; 1]) {
        Ok(n) => assert_eq!(n, 0),
        Err(e) => assert_eq!(e.kind(), io::ErrorKind::ConnectionReset),
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    // Other clients can connect as before.
    assert_eq!(open(&mut bench.protect(bench.greet(), None)).unwrap(), SECTORS * 512);
    bench.server.stop().unwrap();
}

#[test]
fn files_that_hold_something_else_are_named() {
    let bench = Bench::new(true, true);
    let dir = bench.dir.path();
    let fails = |name: &str| match acceptor(&files(dir, true)) {
        Err(TlsError::File { path, expected, .. }) => {
            assert_eq!(path, dir.join(name));
            expected
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{name} was taken"),
    };
    for (name, expected) in [("cert.pem", "certificates"), ("ca.pem", "certificates"), ("key.pem", "a private key")] {
        let good = fs::read(dir.join(name)).unwrap();
        fs::write(dir.join(name), "nothing of the kind\n").unwrap();
        assert_eq!(fails(name), expected);
        fs::remove_file(dir.join(name)).unwrap();
        assert_eq!(fails(name), expected);
        fs::write(dir.join(name), good).unwrap();
    }
    // The key of another certificate.
    fs::write(dir.join("key.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert!(matches!(acceptor(&files(dir, false)), Err(TlsError::Refused(_))));
    bench.server.stop().unwrap();
}
